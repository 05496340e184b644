// SPDX-License-Identifier: BSD-3-Clause
// Object code for Windows, linked and run: the pool of threads, and a kernel with much memory on the stack. The arguments are
// names that the libraries of Windows have to export. Prints "ok" if all results are right. (.ci/emulate windows)
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

typedef int64_t word;
extern word tracejit_work(word pool);
extern word tracejit_run_parts(word pool, word rows, word arguments);
extern void LARGE(word *args);
int _fltused = 1;

enum { PARTS = 40, LENGTH = 2, LAUNCHES = 20000, WORKERS = 3, STOP = 32, MUTEX = 48, CONDITION = 64 };
static volatile LONG64 runs[PARTS * LENGTH];
static _Alignas(64) word pool[80];

static void count(word *args) {
    InterlockedIncrement64(&runs[args[0]]);
    for (volatile int i = 0; i < args[1]; i++) {
    }
}

static DWORD WINAPI worker(void *unused) {
    tracejit_work((word)pool);
    return 0;
}

static int failed(const char *what, int number) {
    printf("%s: %d\n", what, number);
    return 1;
}

// The compiler calls it before a function takes much memory on the stack; its register is that of MinGW's own.
__asm__(".globl __chkstk\n__chkstk: jmp ___chkstk_ms\n");

static int is_exported(const char *name) {
    const char *libraries[] = {"ucrtbase", "vcruntime140", "kernel32", "ntdll"};
    for (int i = 0; i < 4; i++) {
        HMODULE library = LoadLibraryA(libraries[i]);
        if (library && GetProcAddress(library, name)) return 1;
    }
    return 0;
}

int main(int count_of_names, char **names) {
    for (int i = 1; i < count_of_names; i++)
        if (!is_exported(names[i])) return failed(names[i], i);
    static word rows[PARTS * LENGTH][4], arguments[PARTS * LENGTH][2];
    for (int i = 0; i < PARTS * LENGTH; i++) {
        rows[i][0] = (word)count;
        rows[i][1] = 2 * i;
        rows[i][2] = PARTS;
        rows[i][3] = LENGTH;
        arguments[i][0] = i;
        arguments[i][1] = 50;
    }
    HANDLE threads[WORKERS];
    for (int i = 0; i < WORKERS; i++) threads[i] = CreateThread(0, 0, worker, 0, 0, 0);
    for (int n = 0; n < LAUNCHES; n++) {
        if (n % 4000 == 3999) Sleep(2);  // the workers fall asleep
        tracejit_run_parts((word)pool, (word)rows, (word)arguments);
        for (int i = 0; i < PARTS * LENGTH; i++)
            if (runs[i] != n + 1) return failed("a part did not run once in launch", n);
    }
    pool[STOP] = 1;
    AcquireSRWLockExclusive((SRWLOCK *)&pool[MUTEX]);
    WakeAllConditionVariable((CONDITION_VARIABLE *)&pool[CONDITION]);
    ReleaseSRWLockExclusive((SRWLOCK *)&pool[MUTEX]);
    if (WaitForMultipleObjects(WORKERS, threads, TRUE, 10000) == WAIT_TIMEOUT) return failed("workers run on", WORKERS);
    static double x[1000], y[1000];
    for (int i = 0; i < 1000; i++) x[i] = 0.37 * i - 100;
    word args[2] = {(word)x, (word)y};
    LARGE(args);
    for (int i = 0; i < 1000; i++)
        if (fabs(y[i] - sin(x[999 - i])) > 1e-15) return failed("a kernel computes another sine", i);
    puts("ok");
    return 0;
}
