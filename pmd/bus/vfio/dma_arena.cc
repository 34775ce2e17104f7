#include "pmd/bus/vfio/dma_arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/fork.hpp"
#include "base/log.hpp"
#include "base/number.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr size_t kOrdinaryBytes = size_t{64} << 10;
constexpr size_t kLine = 64;
constexpr size_t kMoreEachTry = 4;
// A search covers at most 8 GiB, since each page taken is zeroed.
constexpr size_t kPagesMax = 4096;

size_t round_up(size_t value, size_t unit) {
  return (value + unit - 1) / unit * unit;
}

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

/// Maps addresses that begin on 2 MiB, private to the process or shared with its children. @param
/// flags of mmap(), without a file. @param va the caller unmaps it. @return 0 or -errno.
[[nodiscard]] int map_on_huge_border(Kernel& kernel, size_t len_bytes, int prot, int flags,
                                     void** va) {
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

/// Searches once, among the `pages` hugepages of a file. @return as map_contiguous_hugepages();
/// -EAGAIN: none are neighbours.
[[nodiscard]] int search(Kernel& kernel, Backend& backend, int fd, size_t pages, size_t wanted,
                         void** va) {
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

/// Maps hugepages of a file, zeroed, that are contiguous in bus addresses. Without an IOMMU that
/// takes a search, since the kernel hands hugepages out in any order. It takes more of them, up to
/// all that are free, maps the right ones in order, and gives the rest back. @param len_bytes a
/// multiple of 2 MiB. @param free_pages about how many hugepages are free. @param path set to the
/// file's, which stays. @param va aligned to 2 MiB; the caller unmaps it. @return 0, -ENOMEM (too
/// few, or no neighbours), or as HugeFiles::create() and Backend::map(); then no file stays.
[[nodiscard]] int map_contiguous_hugepages(Kernel& kernel, Backend& backend, HugeFiles& files,
                                           size_t len_bytes, size_t free_pages, std::string* path,
                                           void** va) {
  const size_t wanted = len_bytes / kHugeBytes;
  const size_t most = std::max(wanted, std::min(free_pages, kPagesMax));
  for (size_t pages = wanted;; pages = std::min(pages * kMoreEachTry, most)) {
    KernelFd file;  // the mappings keep the pages after it is closed
    int rc = files.create(pages * kHugeBytes, path, &file);
    if (rc != 0) {
      return rc;
    }
    rc = search(kernel, backend, file.get(), pages, wanted, va);
    if (rc == 0) {
      return 0;
    }
    files.remove(*path);
    if (rc != -EAGAIN || pages == most) {
      return rc != -EAGAIN ? rc : -ENOMEM;
    }
  }
}

}  // namespace

DmaArena::DmaArena(Backend& backend, Kernel& kernel, const PciPaths& paths, const std::string& name)
    : backend_(backend), kernel_(kernel), paths_(paths), name_(name), files_(kernel, paths, name) {}

void DmaArena::leak() {
  size_t len_bytes = 0;
  for (const Area& area : areas_) {
    len_bytes += area.len_bytes;
  }
  areas_.clear();
  base::log_warning(
      "%s: it may still write memory, and no IOMMU is in between: %zu MiB stay allocated, in files "
      "that the next program which opens the card removes; reset it by its slot before registered "
      "memory is freed",
      name_.c_str(), len_bytes >> 20);
}

DmaArena::~DmaArena() {
  for (const Area& area : areas_) {
    (void)backend_.unmap(area.va, area.len_bytes, area.runs);
    base::forget_in_child(area.va);
    kernel_.munmap(area.va, area.len_bytes);
    const auto va = reinterpret_cast<uintptr_t>(area.va);
    const auto kept = taken_.lower_bound(va);
    if (kept != taken_.end() && kept->first < va + area.len_bytes && !area.file.empty()) {
      base::log_warning(
          "%s: the card may still use memory in %s: the next program that opens the card removes "
          "the file",
          name_.c_str(), area.file.c_str());
    } else {
      files_.remove(area.file);
    }
  }
}

int DmaArena::allocate(size_t len_bytes, size_t align_bytes, DmaMemory* out) {
  if (len_bytes == 0 || len_bytes > SIZE_MAX / 4 || !std::has_single_bit(align_bytes) ||
      align_bytes > kHugeBytes) {
    base::log_error(
        "%s: %zu bytes aligned to %zu asked for: take at least 1, aligned to a power of two "
        "up to %zu",
        name_.c_str(), len_bytes, align_bytes, kHugeBytes);
    return -EINVAL;
  }
  const size_t cut = round_up(len_bytes, kLine);  // so that neighbours share no cache line
  const size_t align = std::max(align_bytes, kLine);
  // A piece of 2 MiB or more is aligned to 2 MiB. Physical hugepages may lie apart: ask for more of
  // them before giving up.
  size_t wanted = align > kOrdinaryBytes ? std::max(cut, kHugeBytes) : cut;
  for (int tries = backend_.hugepages_only() ? 3 : 1; !take(cut, align, out); --tries) {
    if (tries == 0) {
      log_too_few_hugepages(len_bytes);
      return -ENOMEM;
    }
    if (const int rc = grow(wanted); rc != 0) {
      return rc;
    }
    wanted *= 2;
  }
  std::memset(out->va, 0, cut);
  out->len_bytes = len_bytes;
  return 0;
}

bool DmaArena::take(size_t len_bytes, size_t align_bytes, DmaMemory* out) {
  for (Piece& piece : pieces_) {
    uint64_t va = 0;
    // Bus address and pointer agree only modulo the piece's own alignment.
    if (((piece.va ^ piece.iova) & (align_bytes - 1)) != 0 ||
        !piece.places.allocate(len_bytes, align_bytes, &va)) {
      continue;
    }
    taken_.emplace(va, len_bytes);
    *out = {reinterpret_cast<void*>(va), piece.iova + (va - piece.va), len_bytes};
    return true;
  }
  return false;
}

void DmaArena::free(const DmaMemory& memory) {
  const auto va = reinterpret_cast<uintptr_t>(memory.va);
  const auto it = taken_.find(va);
  if (it == taken_.end()) {
    base::log_error("%s: memory at %p is freed twice, or was never handed out", name_.c_str(),
                    memory.va);
    return;
  }
  for (Piece& piece : pieces_) {
    if (va >= piece.va && va - piece.va < piece.len_bytes) {
      piece.places.free(va, it->second);
      break;
    }
  }
  taken_.erase(it);
}

bool DmaArena::overlaps(const void* va, size_t len_bytes) const {
  const auto begin = reinterpret_cast<uintptr_t>(va);
  return std::any_of(areas_.begin(), areas_.end(), [&](const Area& area) {
    const auto start = reinterpret_cast<uintptr_t>(area.va);
    return start < begin + len_bytes && begin < start + area.len_bytes;
  });
}

int DmaArena::grow(size_t len_bytes) {
  const int rc = grow_huge(len_bytes);
  if (rc != -ENOMEM) {
    return rc;
  }
  if (backend_.hugepages_only()) {
    log_too_few_hugepages(len_bytes);
    return rc;
  }
  return grow_ordinary(len_bytes);
}

int DmaArena::grow_huge(size_t len_bytes) {
  const size_t area_bytes = round_up(len_bytes, kHugeBytes);
  void* va = nullptr;
  if (backend_.hugepages_only()) {
    size_t free_pages = 0;
    (void)base::read_number(hugepages("free_hugepages"), &free_pages);  // else 0: it is unknown
    std::string file;
    const int rc =
        map_contiguous_hugepages(kernel_, backend_, files_, area_bytes, free_pages, &file, &va);
    return rc == 0 ? add_area(va, area_bytes, file) : rc;
  }
  // Shared, since a fork would otherwise give this process new pages, while the card keeps the old.
  if (kernel_.mmap(nullptr, area_bytes, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE, -1, 0, &va) != 0) {
    return -ENOMEM;
  }
  std::memset(va, 0, area_bytes);
  return add_area(va, area_bytes);
}

int DmaArena::grow_ordinary(size_t len_bytes) {
  const size_t area_bytes = round_up(len_bytes, kOrdinaryBytes);
  void* va = nullptr;
  const int rc = map_on_huge_border(kernel_, area_bytes, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, &va);
  if (rc != 0) {
    base::log_error("%s: no memory for %zu bytes: %s", name_.c_str(), area_bytes,
                    std::strerror(-rc));
    return rc;
  }
  return add_area(va, area_bytes);
}

int DmaArena::add_area(void* va, size_t len_bytes, const std::string& file) {
  Area area{va, len_bytes, {}, file};
  if (const int rc = backend_.map(va, len_bytes, &area.runs); rc != 0) {
    kernel_.munmap(va, len_bytes);
    files_.remove(file);
    if (rc == -ENOTSUP) {
      base::log_error(
          "%s: the kernel gave no hugepages for memory of the card: see /proc/self/smaps",
          name_.c_str());
    }
    return rc;
  }
  for (const IovaRun& run : area.runs) {
    Piece piece{reinterpret_cast<uintptr_t>(run.va), run.iova, run.len_bytes, {}};
    piece.places.add(piece.va, piece.len_bytes);
    pieces_.push_back(std::move(piece));
  }
  areas_.push_back(std::move(area));
  base::replace_in_child(va, len_bytes, base::ChildFinds::kZeros);
  return 0;
}

std::string DmaArena::hugepages(const char* which) const {
  std::string text;
  (void)read_text(paths_.sysfs + "/kernel/mm/hugepages/hugepages-2048kB/" + which, &text, kernel_);
  return text;
}

void DmaArena::log_too_few_hugepages(size_t len_bytes) {
  const std::string free_pages = hugepages("free_hugepages");
  const size_t need = round_up(len_bytes, kHugeBytes) / kHugeBytes;
  size_t have = 0;
  (void)base::read_number(hugepages("nr_hugepages"), &have);  // else 0: it is unknown
  base::log_error(
      "%s: %zu hugepages of 2 MiB%s are needed, %s are free: echo %zu > "
      "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
      name_.c_str(), need, need > 1 ? ", side by side," : "",
      free_pages.empty() ? "unknown" : free_pages.c_str(), have + std::max<size_t>(64, need));
}

}  // namespace rio::pmd::vfio
