/* Reads /proc and the process CPU clock. Any thread. */
#include "process.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool read_times(int pid, struct usage *out)
{
    char path[64], text[1024];
    unsigned long user, system;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[got] = 0;
    const char *fields = strrchr(text, ')'); /* the name before it may contain any character */
    if (!fields || sscanf(fields, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        return false;
    out->user_s = (double)user / (double)sysconf(_SC_CLK_TCK);
    out->system_s = (double)system / (double)sysconf(_SC_CLK_TCK);
    return true;
}

static bool read_memory(int pid, struct usage *out)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    while (fgets(line, sizeof line, file)) {
        double kib;
        if (sscanf(line, "VmRSS: %lf", &kib) == 1)
            out->rss_mb = kib * 1024 / 1e6;
        if (sscanf(line, "VmHWM: %lf", &kib) == 1)
            out->peak_rss_mb = kib * 1024 / 1e6;
    }
    fclose(file);
    return true;
}

bool usage_of(int pid, struct usage *out)
{
    clockid_t clock;
    struct timespec cpu;
    memset(out, 0, sizeof *out);
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &cpu) != 0)
        return false;
    out->cpu_s = (double)cpu.tv_sec + (double)cpu.tv_nsec * 1e-9;
    return read_times(pid, out) && read_memory(pid, out);
}
