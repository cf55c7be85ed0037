// What the engine asks other libraries for and this program answers itself: a symbol of the program's goes before one of a library's. Both
// cost a twentieth of a page's time and do nothing for a program of one thread. Where the engine was built to ask for neither, nobody
// calls these.
// Flags that nobody could pass on to a package of theirs stand here.
#pragma GCC diagnostic error "-Wall"
#pragma GCC diagnostic error "-Wextra"

#include "CTesseract.h"

#define ANSWER __attribute__((visibility("default"), used))

// The engine keeps each line's picture as a PNG from the cut to the reading, a moment later. As it is it takes a few kilobytes more; reading
// knows both forms by how they begin.
ANSWER l_ok pixWriteMem(l_uint8 **data, size_t *size, PIX *picture, l_int32 format);

l_ok pixWriteMem(l_uint8 **data, size_t *size, PIX *picture, l_int32 format) {
    (void)format;
    return pixWriteMemSpix(data, size, picture);
}

// OpenMP makes a team for each step of each line, even of one, and wakes those who wait for it, who are none: 200,000 calls of the system for a
// page. A team of one is a call. The engine asks for these by name and version.
static unsigned next_section, last_section;

ANSWER void team_of_one(void (*body)(void *), void *data, unsigned threads, unsigned flags);
ANSWER void team_of_one_sections(void (*body)(void *), void *data, unsigned threads, unsigned count, unsigned flags);
ANSWER unsigned team_of_one_next(void);
ANSWER void team_of_one_end(void);
__asm__(".symver team_of_one, GOMP_parallel@@GOMP_4.0");
__asm__(".symver team_of_one_sections, GOMP_parallel_sections@@GOMP_4.0");
__asm__(".symver team_of_one_next, GOMP_sections_next@@GOMP_1.0");
__asm__(".symver team_of_one_end, GOMP_sections_end_nowait@@GOMP_1.0");

void team_of_one(void (*body)(void *), void *data, unsigned threads, unsigned flags) {
    (void)threads;
    (void)flags;
    body(data);
}

void team_of_one_sections(void (*body)(void *), void *data, unsigned threads, unsigned count, unsigned flags) {
    (void)threads;
    (void)flags;
    unsigned next = next_section, last = last_section;  // those around these
    next_section = 0;
    last_section = count;
    body(data);
    next_section = next;
    last_section = last;
}

unsigned team_of_one_next(void) { return next_section < last_section ? ++next_section : 0; }

void team_of_one_end(void) {}
