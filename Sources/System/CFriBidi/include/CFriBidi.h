#ifndef MILLRACE_CFRIBIDI_H
#define MILLRACE_CFRIBIDI_H

#include <stdbool.h>
#include <stdint.h>

/// The level of each character of a paragraph by the Unicode bidirectional algorithm, by FriBidi: its functions need types that Swift
/// does not see. False: there is no memory.
bool millrace_bidi_levels(const uint32_t *_Nonnull text, int count, bool is_right_to_left, int8_t *_Nonnull levels);

#endif
