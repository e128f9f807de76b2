// Candidates for sentence ends: terminators (. ! ? …) in the blocks of a text.
//
// The text is UTF-32, so that positions count characters as in Python. `classes` holds a bit set for
// every code point (character_classes.py). A block is a paragraph, heading or list item, without
// white space around it; nothing beyond its end is read. The rules are those of text_splitting.py.
//
// Most terminators are decided here, exactly by these rules. Where the word before a full stop may
// be an abbreviation, a number or an initial, or an ellipsis may stand between two numbers, the
// verdict is ASK, and Python decides.
#include "kernel.h"

namespace {

constexpr uint8_t SPACE = 8, LOWER = 16, TERMINATOR = 32, CLOSER = 64, OPENER = 128;
constexpr uint8_t YES = 1, ASK = 2;
constexpr int64_t LOOKBEHIND = 24;   // characters before a full stop that are read
constexpr int64_t SHAPE_LENGTHS = 9;  // longest abbreviation + 1

// 。 ！ ？ ｡ always end a sentence.
ALWAYS_INLINE bool is_cjk_terminator(uint32_t c) {
    return c == 0x3002 || c == 0xFF01 || c == 0xFF1F || c == 0xFF61;
}

ALWAYS_INLINE bool is_dash(uint32_t c) { return c == '-' || c == 0x2013 || c == 0x2014; }

// Characters with which a sentence continues.
ALWAYS_INLINE bool is_continuation(uint32_t c) {
    return c == ',' || c == ';' || c == ':' || c == ')' || c == ']' || c == '}' || c == 0x2026 ||
           is_dash(c);
}

// True if the word is of ASCII letters, and neither a Roman number, nor of the first letter and
// length of an abbreviation, nor a single letter: a full stop after it ends a sentence.
bool is_plain_word(const uint32_t *word, int64_t length, const uint8_t *abbreviation_shapes) {
    if (length < 2) return false;
    bool is_roman = true;
    for (int64_t i = 0; i < length; i++) {
        const uint32_t letter = word[i] | 0x20;
        if (word[i] >= 128 || letter < 'a' || letter > 'z') return false;
        is_roman &= letter == 'i' || letter == 'v' || letter == 'x' || letter == 'l' || letter == 'c';
    }
    const bool may_be_abbreviation =
        length < SHAPE_LENGTHS &&
        abbreviation_shapes[((word[0] | 0x20) - 'a') * SHAPE_LENGTHS + length];
    return !is_roman && !may_be_abbreviation;
}

}  // namespace

// Marks the blocks of 256 code points that the text uses: blocks (4352,) of 0, set to 1.
KERNEL(find_code_point_blocks)(const uint32_t *text, int64_t size, uint8_t *blocks) {
    for (int64_t i = 0; i < size; i++) blocks[text[i] >> 8] = 1;
}

// For each candidate and for each end of a block: where the terminator begins (matches), where the
// sentence ends (ends), where the next one begins (next_starts), its block, and the verdict.
// `block_starts` has an entry more than there are blocks. abbreviation_shapes (26, 9): 1 if an
// abbreviation has this first letter and length. `*count`: the number of results, at most the
// number of terminators plus that of blocks.
KERNEL(find_sentence_ends)
(const uint32_t *text, const uint8_t *classes, const int64_t *block_starts,
 const int64_t *block_ends, int64_t blocks, const uint8_t *abbreviation_shapes, int64_t *matches,
 int64_t *ends, int64_t *next_starts, int32_t *block_ids, uint8_t *verdicts, int64_t *count) {
    int64_t results = 0;
    for (int64_t block = 0; block < blocks; block++) {
        const int64_t start = block_starts[block], end = block_ends[block];
        for (int64_t i = start; i < end;) {
            if (!(classes[text[i]] & TERMINATOR)) {
                i++;
                continue;
            }
            const int64_t match = i;
            bool is_cjk = false;
            for (; i < end && classes[text[i]] & TERMINATOR; i++) is_cjk |= is_cjk_terminator(text[i]);
            const bool is_full_stop = text[match] == '.' && !(i > match + 1 && text[match + 1] == '.');
            while (i < end && classes[text[i]] & CLOSER) i++;
            // '' between spaces is a closing quote in the style of the Penn Treebank
            if (i + 3 < end && classes[text[i]] & SPACE && text[i + 1] == '\'' &&
                text[i + 2] == '\'' && classes[text[i + 3]] & SPACE)
                i += 3;
            if (i >= end) break;
            int64_t next = i;
            while (next < end && classes[text[next]] & SPACE) next++;
            uint8_t verdict = YES;
            if (!is_cjk) {
                if (next == i) continue;  // no space: 3.14, example.org
                int64_t first = next;
                while (first < end && classes[text[first]] & OPENER) first++;
                // A dash and a space before a capital begin a sentence, as in dialogues.
                if (first + 2 < end && is_dash(text[first]) && classes[text[first + 1]] & SPACE) {
                    first += 2;
                    while (first < end && classes[text[first]] & (SPACE | OPENER)) first++;
                }
                if (first < end && (classes[text[first]] & LOWER || is_continuation(text[first])))
                    continue;
                if (is_full_stop) {
                    const int64_t limit = match - LOOKBEHIND > start ? match - LOOKBEHIND : start;
                    int64_t word = match;
                    while (word > limit && !(classes[text[word - 1]] & SPACE)) word--;
                    if (word < match && !is_plain_word(text + word, match - word, abbreviation_shapes))
                        verdict = ASK;
                } else if (match > start && classes[text[match - 1]] & SPACE &&
                           (text[match] == '.' || text[match] == 0x2026)) {
                    verdict = ASK;  // "1 … 5"
                }
            }
            matches[results] = match;
            ends[results] = i;
            next_starts[results] = next;
            block_ids[results] = int32_t(block);
            verdicts[results++] = verdict;
        }
        matches[results] = ends[results] = end;
        next_starts[results] = block_starts[block + 1];
        block_ids[results] = int32_t(block);
        verdicts[results++] = YES;
    }
    *count = results;
}
