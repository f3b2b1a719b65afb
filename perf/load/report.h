/* Summarizes a run and prints it as one JSON object. Main thread, after the workers have ended. */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H
#include "load.h"
#include "process.h"

struct samples {
    struct usage server_before, server_after, self_before, self_after;
};

void samples_begin(struct samples *s, int server_pid);
void samples_end(struct samples *s, int server_pid);
/* Returns the exit code: 0, or 1 if any response was an error, wrong or missing. */
int report(const struct worker *workers, const struct options *o, const struct run *run, const struct samples *s);
#endif
