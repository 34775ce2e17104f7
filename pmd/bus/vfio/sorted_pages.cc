#include "pmd/bus/vfio/sorted_pages.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace rio::pmd::vfio {
namespace {

constexpr size_t kHugeBytes = size_t{2} << 20;

/// A page of the file that holds the memory.
struct Page {
  uint64_t iova;
  uint64_t offset_bytes;
};

[[nodiscard]] std::vector<Page> pages_of(const std::vector<IovaRun>& runs) {
  std::vector<Page> pages;
  for (const IovaRun& run : runs) {
    for (size_t at = 0; at < run.len_bytes; at += kHugeBytes) {
      pages.push_back({run.iova + at, pages.size() * kHugeBytes});
    }
  }
  return pages;
}

/// The pages of a file at one place, in this order. @return 0 or -errno; nothing stays mapped then.
[[nodiscard]] int map_in_order(Kernel& kernel, int file, const std::vector<Page>& pages,
                               void** va) {
  const size_t len_bytes = pages.size() * kHugeBytes;
  void* raw = nullptr;
  // A place first: PROT_NONE takes no memory, and aligning wants one page more.
  int rc = kernel.mmap(nullptr, len_bytes + kHugeBytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0, &raw);
  if (rc != 0) {
    return rc;
  }
  const auto begin = reinterpret_cast<uintptr_t>(raw);
  const uintptr_t start = (begin + kHugeBytes - 1) / kHugeBytes * kHugeBytes;
  for (size_t i = 0; i < pages.size() && rc == 0; ++i) {
    void* placed = nullptr;
    rc = kernel.mmap(reinterpret_cast<void*>(start + i * kHugeBytes), kHugeBytes,
                     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, file,
                     pages[i].offset_bytes, &placed);
  }
  if (rc != 0) {
    kernel.munmap(raw, len_bytes + kHugeBytes);
    return rc;
  }
  if (start != begin) {
    kernel.munmap(raw, start - begin);
  }
  if (start - begin != kHugeBytes) {
    kernel.munmap(reinterpret_cast<void*>(start + len_bytes), kHugeBytes - (start - begin));
  }
  *va = reinterpret_cast<void*>(start);
  return 0;
}

}  // namespace

int map_sorted_hugepages(Kernel& kernel, Backend& backend, size_t len_bytes, void** va) {
  const int fd = kernel.hugepage_file(len_bytes);
  if (fd < 0) {
    return fd;
  }
  const Fd file(kernel, fd);  // the mappings hold the pages
  void* first = nullptr;
  if (kernel.mmap(nullptr, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0,
                  &first) != 0) {
    return -ENOMEM;
  }
  std::memset(first, 0, len_bytes);  // and all of it is present
  std::vector<IovaRun> runs;
  if (const int rc = backend.map(first, len_bytes, &runs); rc != 0) {
    kernel.munmap(first, len_bytes);
    return rc;
  }
  std::vector<Page> pages = pages_of(runs);
  (void)backend.unmap(first, len_bytes, runs);
  const auto by_iova = [](const Page& a, const Page& b) { return a.iova < b.iova; };
  *va = first;
  if (std::is_sorted(pages.begin(), pages.end(), by_iova)) {
    return 0;
  }
  std::sort(pages.begin(), pages.end(), by_iova);
  void* sorted = nullptr;
  if (map_in_order(kernel, fd, pages, &sorted) == 0) {
    kernel.munmap(first, len_bytes);
    *va = sorted;
  }
  return 0;
}

}  // namespace rio::pmd::vfio
