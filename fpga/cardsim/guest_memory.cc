#include "fpga/cardsim/guest_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "fpga/cardsim/complain.hpp"

namespace rio::cardsim {
namespace {

// Registers of QEMU's intel-iommu.
constexpr uint64_t kGlobalStatus = 0xFED9001C;
constexpr uint64_t kRootAddress = 0xFED90020;
constexpr uint64_t kTranslates = 1u << 31;

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kMostStitched = 4u << 20;  // a ring has at most 2 MiB
constexpr auto kReadEvery = std::chrono::milliseconds(20);
constexpr auto kReadAgainAfterFailure = std::chrono::seconds(1);

}  // namespace

GuestMemory::GuestMemory(const name::Guest& guest)
    : guest_(guest),
      ram_(std::make_unique<GuestRam>(guest.ram)),
      monitor_(guest.monitor.empty() ? nullptr : monitor_at(guest.monitor)) {}

void GuestMemory::forget_translations() {
  words_.clear();
  pages_.fill({});
  std::ranges::move(stitched_, std::back_inserter(stale_));
  stitched_.clear();
  changed();
}

void GuestMemory::forget_guest() {
  forget_translations();
  stale_.clear();
  known_ = false;
  if (monitor_ != nullptr) {
    monitor_->forget();
  }
  ram_ = std::make_unique<GuestRam>(guest_.ram);
}

void GuestMemory::serve() {
  if (monitor_ != nullptr) {
    monitor_->serve();
  }
}

void GuestMemory::begin_turn(uint32_t gen_req) {
  if (gen_req != gen_req_) {
    gen_req_ = gen_req;
    known_ = false;
  }
  stale_.clear();  // each card has made a step since, and no longer uses them
  check_translations();
}

void GuestMemory::check_translations() {
  if (!words_.hold()) {
    forget_translations();
  }
}

bool GuestMemory::read_registers() {
  const auto now = std::chrono::steady_clock::now();
  if (failed_ ? now - read_at_ < kReadAgainAfterFailure : known_ && now - read_at_ < kReadEvery) {
    return false;
  }
  uint64_t status = 0;
  Registers fresh;
  int rc = monitor_->read_word(kGlobalStatus, 4, &status);
  rc = rc != 0 ? rc : monitor_->read_word(kRootAddress, 8, &fresh.root);
  read_at_ = std::chrono::steady_clock::now();
  failed_ = rc != 0 && rc != -ENOTCONN;
  if (rc != 0) {
    if (!told_) {
      complain(
          "the monitor does not return the IOMMU's registers: %s; is monitor= QEMU's "
          "-monitor unix:PATH,server=on,wait=off, and is no other program connected?",
          std::strerror(-rc));
      told_ = true;
    }
    return false;
  }
  fresh.translates = (status & kTranslates) != 0;
  const bool other = !known_ || !(fresh == registers_);
  registers_ = fresh;
  known_ = true;
  if (other) {
    forget_translations();
  }
  return other;
}

bool GuestMemory::look_up(uint64_t iova, model::HostWindow* out) {
  if (!known_) {
    return false;
  }
  if (!registers_.translates) {
    return find_physical(iova, out);
  }
  model::HostWindow& cached = pages_[iova / kPageBytes % pages_.size()];
  if (cached.holds(iova, 1)) {
    *out = cached;
    return true;
  }
  IommuPage page;
  if (!walk_iommu(*ram_, registers_.root, guest_.bdf, iova, &words_, &page)) {
    return false;
  }
  // A large page may extend beyond the RAM.
  GuestRam::Run run;
  if (!ram_->find(page.address, &run) || run.len_bytes < page.len_bytes) {
    const uint64_t first = iova & ~(kPageBytes - 1);
    page.address += first - page.iova;
    page.iova = first;
    page.len_bytes = kPageBytes;
    if (!ram_->find(page.address, &run) || run.len_bytes < page.len_bytes) {
      return false;
    }
  }
  cached = {page.iova, page.len_bytes, run.va, page.readable, page.writable};
  *out = cached;
  return true;
}

bool GuestMemory::find_physical(uint64_t address, model::HostWindow* out) {
  GuestRam::Run run;
  if (!ram_->find(address, &run)) {
    return false;
  }
  *out = {address, run.len_bytes, run.va};
  return true;
}

bool GuestMemory::find(uint64_t iova, model::HostWindow* out) {
  if (monitor_ == nullptr) {
    return find_physical(iova, out);
  }
  // An entry that the guest posts during a step may come after it has unmapped memory.
  check_translations();
  return look_up(iova, out) || (read_registers() && look_up(iova, out));
}

bool GuestMemory::find_whole(uint64_t iova, uint64_t len_bytes, model::HostWindow* out) {
  if (!find(iova, out)) {
    return false;
  }
  if (out->holds(iova, len_bytes) || len_bytes > kMostStitched) {
    return true;
  }
  for (const Stitched& one : stitched_) {
    if (one.window.holds(iova, len_bytes)) {
      *out = one.window;
      return true;
    }
  }
  return stitch(iova, len_bytes, out);
}

bool GuestMemory::stitch(uint64_t iova, uint64_t len_bytes, model::HostWindow* out) {
  const uint64_t first = iova & ~(kPageBytes - 1);
  const uint64_t bytes = (iova + len_bytes - first + kPageBytes - 1) & ~(kPageBytes - 1);
  base::Mapping memory;
  if (base::Mapping::of_addresses(bytes, kPageBytes, &memory) != 0) {
    return false;
  }
  model::HostWindow window{first, bytes, memory.va()};
  for (uint64_t at = 0; at < bytes; at += kPageBytes) {
    model::HostWindow page;
    GuestRam::Run run;
    if (!find(first + at, &page) || !ram_->run_of(page.at(first + at), &run) ||
        mmap(memory.va() + at, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             ram_->fd().get(), static_cast<off_t>(run.file_offset)) == MAP_FAILED) {
      return false;
    }
    window.readable = window.readable && page.readable;
    window.writable = window.writable && page.writable;
  }
  stitched_.push_back({window, std::move(memory)});
  *out = window;
  return true;
}

}  // namespace rio::cardsim
