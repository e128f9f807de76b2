// Words of a document: ids in order of first use, found by hashing the bytes of the text.
//
// The text is UTF-8 in lower case (surrogates, which Python strings may hold, are encoded like other
// characters). Elements are separated by the byte 0x1E. A word is a run of letters and digits, with
// single apostrophes inside it; a character of a script without spaces is a word of its own. What a
// letter is, Python decides: `classes` holds a bit set for every code point (character_classes.py).
//
// The vocabulary is an open-addressing hash table of word numbers, at most half full; a word is its
// first place in the text, so nothing is copied. Equal words have equal bytes: the result is exact.
#include <cstdlib>

#include "kernel.h"

namespace {

constexpr uint8_t ALPHANUMERIC = 2, SPACELESS = 4;  // bits of character_classes.py
constexpr uint8_t SEPARATOR = 0x1E;

// Code point at `text`, which is valid UTF-8, and its length in bytes.
ALWAYS_INLINE uint32_t decode(const uint8_t *text, int &size) {
    const uint32_t lead = text[0];
    if (lead < 0x80) {
        size = 1;
        return lead;
    }
    if (lead < 0xE0) {
        size = 2;
        return (lead & 0x1F) << 6 | (text[1] & 0x3F);
    }
    if (lead < 0xF0) {
        size = 3;
        return (lead & 0x0F) << 12 | (text[1] & 0x3Fu) << 6 | (text[2] & 0x3F);
    }
    size = 4;
    return (lead & 0x07) << 18 | (text[1] & 0x3Fu) << 12 | (text[2] & 0x3Fu) << 6 | (text[3] & 0x3F);
}

// A mix of multiplications over words of eight bytes.
ALWAYS_INLINE uint64_t hash_bytes(const uint8_t *bytes, int64_t size) {
    uint64_t hash = uint64_t(size) * 0x9E3779B97F4A7C15u;
    for (; size > 8; size -= 8, bytes += 8) {
        uint64_t chunk;
        memcpy(&chunk, bytes, 8);
        hash = (hash ^ chunk) * 0xD6E8FEB86659FD93u;
        hash ^= hash >> 32;
    }
    uint64_t chunk = 0;
    for (int64_t i = 0; i < size; i++) chunk |= uint64_t(bytes[i]) << (8 * i);
    hash = (hash ^ chunk) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
    hash *= 0xD6E8FEB86659FD93u;
    return hash ^ hash >> 32;
}

struct Slot {
    uint32_t hash;
    int32_t word;  // −1: free
};

struct Vocabulary {
    const uint8_t *text;
    int64_t *begins, *ends;  // first place of each word in the text
    Slot *slots = nullptr;
    uint64_t mask = 0;
    int32_t count = 0;

    bool grow() {
        const uint64_t size = slots ? 2 * (mask + 1) : 1 << 12;
        Slot *larger = static_cast<Slot *>(malloc(size * sizeof(Slot)));
        if (!larger) return false;
        for (uint64_t i = 0; i < size; i++) larger[i].word = -1;
        for (uint64_t i = 0; slots && i <= mask; i++) {
            if (slots[i].word < 0) continue;
            uint64_t place = slots[i].hash & (size - 1);
            while (larger[place].word >= 0) place = (place + 1) & (size - 1);
            larger[place] = slots[i];
        }
        free(slots);
        slots = larger;
        mask = size - 1;
        return true;
    }

    // Id of the word text[begin … end − 1]; −1 if there is no memory.
    ALWAYS_INLINE int32_t find(int64_t begin, int64_t end) {
        const int64_t size = end - begin;
        const uint32_t hash = uint32_t(hash_bytes(text + begin, size));
        uint64_t place = hash & mask;
        for (; slots[place].word >= 0; place = (place + 1) & mask) {
            const int32_t word = slots[place].word;
            if (slots[place].hash == hash && ends[word] - begins[word] == size &&
                memcmp(text + begins[word], text + begin, size) == 0)
                return word;
        }
        slots[place] = {hash, count};
        begins[count] = begin;
        ends[count] = end;
        const int32_t word = count++;
        if (uint64_t(count) * 2 > mask && !grow()) return -1;
        return word;
    }
};

}  // namespace

// Marks the blocks of 256 code points that the text uses: blocks (4352,) of 0, set to 1.
KERNEL(find_character_blocks)(const uint8_t *text, int64_t size, uint8_t *blocks) {
    for (int64_t i = 0; i < size;) {
        uint64_t chunk;
        if (i + 8 <= size) {  // eight ASCII bytes at once
            memcpy(&chunk, text + i, 8);
            if (!(chunk & 0x8080808080808080u)) {
                i += 8;
                continue;
            }
        }
        int length;
        blocks[decode(text + i, length) >> 8] = 1;
        i += length;
    }
    if (size > 0) blocks[0] = 1;
}

// ids: the words of all elements; starts (separators + 2): index of the first word of each element,
// then the number of words; begins, ends: where each word of the vocabulary is in the text.
// result: numbers of words in `ids`, of elements, and of words in the vocabulary; the first is −1
// if there is not enough memory. A text of n bytes has at most n / 2 + 1 words.
KERNEL(tokenize)
(const uint8_t *text, int64_t size, const uint8_t *classes, int32_t *ids, int64_t *starts,
 int64_t *begins, int64_t *ends, int64_t *result) {
    Vocabulary vocabulary{text, begins, ends};
    if (!vocabulary.grow()) {
        result[0] = -1;
        return;
    }
    int64_t count = 0, element = 0;
    starts[0] = 0;
    for (int64_t i = 0; i < size;) {
        int length;
        const uint32_t character = decode(text + i, length);
        const uint8_t kind = classes[character];
        if (!(kind & (ALPHANUMERIC | SPACELESS))) {
            if (character == SEPARATOR) starts[++element] = count;
            i += length;
            continue;
        }
        const int64_t begin = i;
        i += length;
        if (!(kind & SPACELESS)) {
            for (;;) {
                while (i < size) {
                    const uint8_t next = classes[decode(text + i, length)];
                    if (!(next & ALPHANUMERIC) || next & SPACELESS) break;
                    i += length;
                }
                // an apostrophe, ' or ’, belongs to the word if a letter or digit follows
                if (i >= size) break;
                const uint32_t mark = decode(text + i, length);
                if ((mark != '\'' && mark != 0x2019) || i + length >= size) break;
                int next_length;
                const uint8_t next = classes[decode(text + i + length, next_length)];
                if (!(next & ALPHANUMERIC) || next & SPACELESS) break;
                i += length + next_length;
            }
        }
        const int32_t word = vocabulary.find(begin, i);
        if (word < 0) {
            count = -1;
            break;
        }
        ids[count++] = word;
    }
    free(vocabulary.slots);
    if (count >= 0) starts[element + 1] = count;
    result[0] = count;
    result[1] = element + 1;
    result[2] = vocabulary.count;
}
