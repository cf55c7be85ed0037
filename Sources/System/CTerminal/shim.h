#pragma once
#include <stddef.h>

// Swift imports glibc without _XOPEN_SOURCE, and so without wcwidth; the declaration is POSIX's.
int wcwidth(wchar_t character);

static inline int millrace_wcwidth(wchar_t character) { return wcwidth(character); }
