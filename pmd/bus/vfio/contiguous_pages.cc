#include "pmd/bus/vfio/contiguous_pages.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

namespace rio::pmd::vfio {
namespace {

constexpr size_t kHugeBytes = size_t{2} << 20;
constexpr size_t kMoreEachTry = 4;
constexpr size_t kPagesMax =
    4096;  // a search covers at most 8 GiB, since each page taken is zeroed

/// A page of the file that holds the memory.
struct Page {
  uint64_t iova;
  uint64_t offset_bytes;
};

/// Maps and zeroes the pages of a file, and gets their bus addresses.
[[nodiscard]] int map_pages(Kernel& kernel, Backend& backend, int file, size_t pages,
                            std::vector<Page>* out) {
  const size_t len_bytes = pages * kHugeBytes;
  void* va = nullptr;
  if (kernel.mmap(nullptr, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0,
                  &va) != 0) {
    return -ENOMEM;
  }
  std::memset(va, 0, len_bytes);  // this also makes all of it present
  std::vector<IovaRun> runs;
  const int rc = backend.map(va, len_bytes, &runs);
  if (rc == 0) {
    for (const IovaRun& run : runs) {
      for (size_t at = 0; at < run.len_bytes; at += kHugeBytes) {
        out->push_back({run.iova + at, out->size() * kHugeBytes});
      }
    }
    std::sort(out->begin(), out->end(),
              [](const Page& a, const Page& b) { return a.iova < b.iova; });
    (void)backend.unmap(va, len_bytes, runs);
  }
  kernel.munmap(va, len_bytes);
  return rc;
}

/// The first `wanted` neighbours among sorted pages; empty if there are none.
[[nodiscard]] std::span<const Page> neighbours(const std::vector<Page>& pages, size_t wanted) {
  size_t first = 0;
  for (size_t i = 0; i < pages.size(); ++i) {
    if (i > first && pages[i].iova != pages[i - 1].iova + kHugeBytes) {
      first = i;
    }
    if (i + 1 - first == wanted) {
      return {&pages[first], wanted};
    }
  }
  return {};
}

/// Maps pages of a file next to each other, in this order. @return 0 or -errno; then nothing stays
/// mapped.
[[nodiscard]] int map_in_order(Kernel& kernel, int file, std::span<const Page> pages, void** va) {
  const size_t len_bytes = pages.size() * kHugeBytes;
  void* start = nullptr;
  // Reserve addresses first: PROT_NONE takes no memory.
  int rc = map_on_huge_border(kernel, len_bytes, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, &start);
  if (rc != 0) {
    return rc;
  }
  for (size_t i = 0; i < pages.size() && rc == 0; ++i) {
    void* placed = nullptr;
    rc = kernel.mmap(static_cast<uint8_t*>(start) + i * kHugeBytes, kHugeBytes,
                     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, file,
                     pages[i].offset_bytes, &placed);
  }
  if (rc != 0) {
    kernel.munmap(start, len_bytes);
    return rc;
  }
  *va = start;
  return 0;
}

/// Searches once, among `pages` hugepages. @return as map_contiguous_hugepages(); -EAGAIN: none are
/// neighbours.
[[nodiscard]] int search(Kernel& kernel, Backend& backend, size_t pages, size_t wanted, void** va) {
  const int fd = kernel.hugepage_file(pages * kHugeBytes);
  if (fd < 0) {
    return fd;
  }
  const KernelFd file(kernel, fd);  // the mappings keep the pages after the file is closed
  std::vector<Page> found;
  if (const int rc = map_pages(kernel, backend, fd, pages, &found); rc != 0) {
    return rc;
  }
  const std::span<const Page> chosen = neighbours(found, wanted);
  if (chosen.empty()) {
    return -EAGAIN;
  }
  if (const int rc = map_in_order(kernel, fd, chosen, va); rc != 0) {
    return rc;
  }
  for (const Page& page : found) {
    if (page.iova < chosen.front().iova || page.iova > chosen.back().iova) {
      kernel.drop_pages(fd, page.offset_bytes, kHugeBytes);
    }
  }
  return 0;
}

}  // namespace

int map_on_huge_border(Kernel& kernel, size_t len_bytes, int prot, int flags, void** va) {
  void* raw = nullptr;
  // Alignment needs one page more.
  if (const int rc = kernel.mmap(nullptr, len_bytes + kHugeBytes, prot, flags, -1, 0, &raw);
      rc != 0) {
    return rc;
  }
  const auto begin = reinterpret_cast<uintptr_t>(raw);
  const uintptr_t start = (begin + kHugeBytes - 1) / kHugeBytes * kHugeBytes;
  if (start != begin) {
    kernel.munmap(raw, start - begin);
  }
  if (start - begin != kHugeBytes) {
    kernel.munmap(reinterpret_cast<void*>(start + len_bytes), kHugeBytes - (start - begin));
  }
  *va = reinterpret_cast<void*>(start);
  return 0;
}

int map_contiguous_hugepages(Kernel& kernel, Backend& backend, size_t len_bytes, size_t free_pages,
                             void** va) {
  const size_t wanted = len_bytes / kHugeBytes;
  const size_t most = std::max(wanted, std::min(free_pages, kPagesMax));
  for (size_t pages = wanted;; pages = std::min(pages * kMoreEachTry, most)) {
    const int rc = search(kernel, backend, pages, wanted, va);
    if (rc != -EAGAIN) {
      return rc;
    }
    if (pages == most) {
      return -ENOMEM;
    }
  }
}

}  // namespace rio::pmd::vfio
