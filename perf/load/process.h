/* CPU seconds and resident memory of another process. Linux only. */
#ifndef PERF_PROCESS_H
#define PERF_PROCESS_H
#include <stdbool.h>

struct usage {
    double cpu_s, user_s, system_s; /* of all threads, ended ones included; cpu_s has ns, the others have clock ticks */
    double rss_mb, peak_rss_mb;     /* VmRSS and VmHWM, in 10^6 bytes */
};

/* False: no such process. */
bool usage_of(int pid, struct usage *out);
#endif
