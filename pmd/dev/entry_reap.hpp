/// @file
/// Reaping of regs::EntryCpl: dedicated, DMA and maintenance rings.
#pragma once

#include <cstdint>
#include <cstring>

#include "pmd/dev/reap.hpp"

namespace rio::pmd {

// A result is the cookie and the completion's second half, copied as is; the phase lands in the
// padding.
static_assert(sizeof(EntryDone) == 16 && offsetof(EntryDone, bytes) == 8 &&
              offsetof(EntryDone, status) == 12 && offsetof(EntryDone, retries) == 13 &&
              offsetof(regs::EntryCpl, bytes) == 8 && offsetof(regs::EntryCpl, status) == 12 &&
              regs::entry_cpl::Status::code.lsb == 0 && regs::entry_cpl::Status::retries.lsb == 8);

/// For reap_burst(); sizes are those of the EntryWindow.
struct EntryReap {
  using Cpl = regs::EntryCpl;
  using Done = EntryDone;
  static uint32_t size(const uint32_t* sizes, size_t slot) { return sizes[slot]; }
  using Raw = uint64_t;
  static Raw load(const Cpl& cpl) { return load_last_words(cpl); }
  static uint64_t last(Raw raw) { return raw; }
  static uint32_t bytes(Raw raw, uint32_t /*size*/) { return static_cast<uint32_t>(raw); }
  static uint32_t misfit(Raw raw, uint32_t size) {
    // The card may report any number, but sizes end at 64 KiB: the top bit of either term is
    // enough.
    return (size - static_cast<uint32_t>(raw)) | static_cast<uint32_t>(raw);
  }
  static void fill(const Cpl& /*cpl*/, Raw raw, Status /*status*/, uint64_t cookie, Done* out) {
    out->cookie = cookie;
    std::memcpy(reinterpret_cast<uint8_t*>(out) + 8, &raw, sizeof raw);
  }
  static void spoil(Done* out) {
    out->status = Status::kFormat;
    out->bytes = 0;
  }
};

}  // namespace rio::pmd
