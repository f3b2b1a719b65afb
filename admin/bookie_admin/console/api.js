// Requests to the bookie that serves this page. The token is kept in this tab only; no HTTP cookie is ever set.

const KEY = "bookie-token";
const TIMEOUT_MS = 40000;

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

let token = sessionStorage.getItem(KEY) ?? "";

export function signIn(text) {
  token = text.trim();
  if (token) sessionStorage.setItem(KEY, token);
  else sessionStorage.removeItem(KEY);
}

export const signedIn = () => token !== "";

// Ledger ids have 63 bits, and numbers of JSON.parse 53. A longer id stays text, else another ledger would be shown and
// deleted.
const MEMBER = /"((?:[^"\\]|\\.)*)"(?:(\s*:\s*)(\d{16,})(?![\d.eE]))?/g;
const withLongIds = (text) => text.replace(MEMBER, (all, key, colon, id) => (
  id && /ledger/i.test(key) && !Number.isSafeInteger(Number(id)) ? `"${key}"${colon}"${id}"` : all));

async function ask(method, path, body) {
  const headers = { accept: "application/json" };
  if (token) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "omit", cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS),
    });
  } catch {
    throw new Refused(0, "The bookie does not answer. Check that it is running and that this machine can reach it.");
  }
  const text = await answer.text();
  if (!answer.ok) throw new Refused(answer.status, text.trim() || `HTTP status ${answer.status}`);
  try {
    return JSON.parse(withLongIds(text));
  } catch {
    return text;
  }
}

const query = (params) => {
  const given = Object.entries(params ?? {}).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return given.length ? `?${new URLSearchParams(given)}` : "";
};

export const get = (path, params) => ask("GET", path + query(params));
export const put = (path, body, params) => ask("PUT", path + query(params), body);
export const remove = (path, params) => ask("DELETE", path + query(params));
