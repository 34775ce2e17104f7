/// @file
/// A bus for the tests of pmd/mem: fake bus addresses, every call checked and counted.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "pmd/bus/bus.hpp"

namespace rio::pmd::mem {

class FakeBus : public Bus {
 public:
  static constexpr size_t kPage = 4096;

  ~FakeBus() override {
    for (const auto& [va, len] : allocated) {
      std::free(va);
    }
  }

  Mmio bar() override { return {}; }

  int dma_alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) override {
    if (fail_alloc != 0) {
      return fail_alloc;
    }
    const size_t rounded = (len_bytes + align_bytes - 1) / align_bytes * align_bytes;
    void* va = std::aligned_alloc(align_bytes, rounded);
    std::memset(va, 0, rounded);
    allocated[va] = len_bytes;
    next_iova = (next_iova + align_bytes - 1) / align_bytes * align_bytes;
    *out = {va, next_iova, len_bytes};
    next_iova += rounded;
    return 0;
  }
  void dma_free(const DmaMemory& memory) override {
    std::free(memory.va);
    allocated.erase(memory.va);
  }

  /// Bytes that are mapped by dma_map().
  [[nodiscard]] uint64_t mapped_bytes() const {
    uint64_t sum = 0;
    for (const auto& [start, len] : mapped) {
      sum += len;
    }
    return sum;
  }

  /// One run per page if `scatter` is set, else one run.
  int dma_map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) override {
    const auto begin = reinterpret_cast<uintptr_t>(va);
    if (begin % kPage != 0 || len_bytes % kPage != 0 || len_bytes == 0) {
      return -EINVAL;
    }
    if (fail_map_at >= begin && fail_map_at < begin + len_bytes) {
      return -ENOTSUP;
    }
    for (const auto& [start, len] : mapped) {
      if (start < begin + len_bytes && begin < start + len) {
        return -EEXIST;
      }
    }
    mapped[begin] = len_bytes;
    ++maps;
    runs->clear();
    const size_t step = scatter ? kPage : len_bytes;
    for (size_t at = 0; at < len_bytes; at += step) {
      runs->push_back({static_cast<uint8_t*>(va) + at, next_iova, step});
      next_iova += step + (scatter ? kPage : 0);
    }
    return 0;
  }
  int dma_unmap(void* va, size_t len_bytes) override {
    const auto it = mapped.find(reinterpret_cast<uintptr_t>(va));
    if (it == mapped.end() || it->second != len_bytes) {
      ++bad_unmaps;
      return -EINVAL;
    }
    mapped.erase(it);
    return 0;
  }

  bool maps_addresses() const override { return addresses; }
  const std::string& name() const override { return name_; }

  std::map<void*, size_t> allocated;
  std::map<uintptr_t, size_t> mapped;
  uint64_t next_iova = 0x100000000;
  uintptr_t fail_map_at = 0;
  int fail_alloc = 0;
  int maps = 0;
  int bad_unmaps = 0;
  bool scatter = false;
  bool addresses = false;

 private:
  std::string name_ = "fake";
};

}  // namespace rio::pmd::mem
