/* What peers call most often, as functions of a Python module. A call through ctypes takes ten times as long. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "world.h"

enum { BUFFER_BYTES = 1 << 20 };

int64_t peer_send(int index, const char *data, int64_t size);
int64_t peer_receive(int index, char *data, int64_t size);
uint64_t peer_news(void);
void world_history(const void *record, int64_t size);

static char buffer[BUFFER_BYTES];

/* send(connection, data): how many bytes the bookie's socket took, -1 if the bookie has closed. */
static PyObject *call_send(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    char *data;
    Py_ssize_t size;
    int index;
    (void)module;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "send takes a connection and bytes");
        return NULL;
    }
    index = (int)PyLong_AsLong(given[0]);
    if (PyErr_Occurred() || PyBytes_AsStringAndSize(given[1], &data, &size) != 0)
        return NULL;
    return PyLong_FromLongLong(peer_send(index, data, size));
}

/* receive(connection, most): what has arrived, b"" if that is nothing, None if the bookie has closed; all if most is 0. */
static PyObject *call_receive(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    int64_t most, size;
    int index;
    (void)module;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "receive takes a connection and a number of bytes");
        return NULL;
    }
    index = (int)PyLong_AsLong(given[0]);
    most = PyLong_AsLongLong(given[1]);
    if (PyErr_Occurred())
        return NULL;
    size = peer_receive(index, buffer, most > 0 && most < BUFFER_BYTES ? most : BUFFER_BYTES);
    if (size < 0)
        Py_RETURN_NONE;
    return PyBytes_FromStringAndSize(buffer, size);
}

/* record(data): append to the history, which outlives this process. */
static PyObject *call_record(PyObject *module, PyObject *record)
{
    char *data;
    Py_ssize_t size;
    (void)module;
    if (PyBytes_AsStringAndSize(record, &data, &size) != 0)
        return NULL;
    world_history(data, size);
    Py_RETURN_NONE;
}

static PyObject *call_now(PyObject *module, PyObject *nothing)
{
    (void)module, (void)nothing;
    return PyLong_FromLongLong(shared->now);
}

static PyObject *call_news(PyObject *module, PyObject *nothing)
{
    (void)module, (void)nothing;
    return PyLong_FromUnsignedLongLong(peer_news());
}

static PyMethodDef functions[] = {
    {"send", (PyCFunction)(void (*)(void))call_send, METH_FASTCALL, NULL},
    {"receive", (PyCFunction)(void (*)(void))call_receive, METH_FASTCALL, NULL},
    {"record", call_record, METH_O, NULL},
    {"now", call_now, METH_NOARGS, NULL},
    {"news", call_news, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "world_calls", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_world_calls(void)
{
    return PyModule_Create(&definition);
}
