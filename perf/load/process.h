/* What a process has used so far, read from outside: CPU seconds and resident memory. Linux only. */
#ifndef PERF_PROCESS_H
#define PERF_PROCESS_H
#include <stdbool.h>

struct usage {
    double cpu_s, user_s, system_s; /* all threads, also those that ended; cpu_s in ns steps, the others in clock ticks */
    double rss_mb, peak_rss_mb;     /* VmRSS and VmHWM, in 10^6 bytes */
};

/* False: no such process. */
bool usage_of(int pid, struct usage *out);
#endif
