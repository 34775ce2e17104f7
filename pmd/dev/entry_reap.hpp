/// @file
/// Reaping of regs::EntryCpl: dedicated, DMA and maintenance rings.
#pragma once

#include <cstdint>

#include "pmd/dev/reap.hpp"

namespace rio::pmd {

static_assert(offsetof(EntryDone, bytes) == 8 && offsetof(regs::EntryCpl, bytes) == 8);

/// For reap_burst(); sizes are those of the EntryWindow.
struct EntryReap : TailReap<regs::EntryCpl, EntryDone> {
  static uint32_t size(const uint32_t* sizes, size_t slot) { return sizes[slot]; }
  static uint32_t bytes(Raw raw, uint32_t /*size*/) { return static_cast<uint32_t>(raw); }
  static uint32_t misfit(Raw raw, uint32_t size) {
    // The card may report any number, but sizes end at 64 KiB: the top bit of either term is
    // enough.
    return (size - static_cast<uint32_t>(raw)) | static_cast<uint32_t>(raw);
  }
  static void spoil(Done* out) {
    out->status = Status::kFormat;
    out->bytes = 0;
  }
};

}  // namespace rio::pmd
