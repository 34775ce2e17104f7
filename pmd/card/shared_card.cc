#include "pmd/card/shared_card.hpp"

#include <rte_errno.h>
#include <rte_memzone.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <set>
#include <sstream>
#include <thread>

#include "base/folder.hpp"
#include "base/formatted.hpp"
#include "base/log.hpp"
#include "base/text_file.hpp"
#include "pmd/bus/eal/zones.hpp"
#include "pmd/dev/ring.hpp"
#include "pmd/dev/window_table.hpp"

namespace rio::pmd {
namespace {

constexpr uint64_t kStartMask = (uint64_t{1} << 42) - 1;
constexpr uint32_t kReaperWaitMs = 10'000;

struct ProcStat {
  char state = 0;
  uint64_t start_ticks = 0;
};

/// proc(5): the name in field 2 may hold blanks and parentheses, so count from the last ')'.
bool read_stat(uint32_t pid, ProcStat* out) {
  constexpr size_t kBytesMax = 4096;
  std::string text;
  std::string why;
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  if (base::read_text_file(path, kBytesMax, &text, &why) != 0) {
    return false;
  }
  const size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos) {
    return false;
  }
  std::istringstream fields(text.substr(name_end + 2));
  fields >> out->state;
  for (int field = 4; field < 22; ++field) {
    std::string other;
    fields >> other;
  }
  return static_cast<bool>(fields >> out->start_ticks);
}

OwnerToken make_token(uint32_t pid, uint64_t start_ticks) {
  return (static_cast<uint64_t>(pid) << 42) | (start_ticks & kStartMask);
}

uint64_t pid_namespace() {
  struct stat info {};
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

/// Makes the memzone's name. @return 0, -ENAMETOOLONG.
int zone_name(const std::string& device_name, std::string* out) {
  std::string name = "rio_" + device_name;
  if (name.size() >= RTE_MEMZONE_NAMESIZE) {
    base::log_error("%s: the name is too long for a memzone: take at most %d characters",
                    device_name.c_str(), RTE_MEMZONE_NAMESIZE - 5);
    return -ENAMETOOLONG;
  }
  *out = std::move(name);
  return 0;
}

/// Stops all rings and closes all windows of a queue pair whose owner is dead. @return 0; else its
/// memory must not be freed: -ETIMEDOUT (the card did not answer), -ENODEV (it is gone), -ENOMEM.
int stop_orphan(Bus& bus, uint32_t qp) {
  Mmio bar = bus.bar();
  const uint32_t limit_ms = stop_limit_ms(bar.read32(regs::id::response_us()), kStopSlackMs);
  std::unique_ptr<WindowTable> windows;  // a new table closes what is open
  if (const int rc = WindowTable::create(bus, Caps{}, qp, limit_ms, &windows); rc != 0) {
    return rc;
  }
  const uint32_t rings = bar.read32(regs::qp::rings(qp));
  for (uint32_t ring = 0; ring < regs::kRingsPerQp; ++ring) {
    const bool there = (rings >> ring & 1) != 0;
    if (const int rc = there ? Ring::stop_orphan(bus, qp, ring, limit_ms) : 0; rc != 0) {
      return rc;
    }
  }
  return 0;
}

}  // namespace

OwnerToken own_token() {
  const auto pid = static_cast<uint32_t>(getpid());
  ProcStat stat;
  return read_stat(pid, &stat) ? make_token(pid, stat.start_ticks) : 0;
}

bool token_alive(OwnerToken token) {
  const uint32_t pid = token_pid(token);
  ProcStat stat;
  if (token == 0 || !read_stat(pid, &stat) || make_token(pid, stat.start_ticks) != token) {
    return false;
  }
  // A process whose first thread has ended (state Z) may have others that go on.
  return (stat.state != 'Z' && stat.state != 'X') ||
         base::names_in("/proc/" + std::to_string(pid) + "/task").size() > 1;
}

void SharedCard::number_it() {
  static std::atomic<uint32_t> next{1};
  // relaxed: the number only has to differ
  card_number_ = next.fetch_add(1, std::memory_order_relaxed);
}

std::string SharedCard::zone_tag(OwnerToken owner) const {
  return base::formatted("r%x.%" PRIx64, card_number_ & 0xFFFFu, owner);
}

int SharedCard::create(const std::string& device_name, uint32_t queue_pairs, bool stepping_thread,
                       const DmaMemory& bar, const std::string& wire) {
  std::string name;
  if (const int rc = zone_name(device_name, &name); rc != 0) {
    return rc;
  }
  const rte_memzone* zone =
      rte_memzone_reserve(name.c_str(), sizeof(SharedCardLayout), SOCKET_ID_ANY, 0);
  if (zone == nullptr) {
    const int error = rte_errno;
    base::log_error("%s: no memzone %s: %s", device_name.c_str(), name.c_str(),
                    rte_strerror(error));
    return -error;
  }
  std::memset(zone->addr, 0, zone->len);
  zone_ = zone;
  primary_ = true;
  layout_ = static_cast<SharedCardLayout*>(zone->addr);
  layout_->version = SharedCardLayout::kVersion;
  layout_->card_number = card_number_;
  layout_->queue_pairs = queue_pairs;
  layout_->stepping_thread = stepping_thread ? 1 : 0;
  layout_->pid_namespace = pid_namespace();
  layout_->bar_va = reinterpret_cast<uint64_t>(bar.va);
  layout_->bar_iova = bar.iova;
  layout_->bar_len_bytes = bar.len_bytes;
  std::snprintf(layout_->wire, sizeof(layout_->wire), "%s", wire.c_str());
  // release: the words above are there before the magic; pairs with the acquire in attach()
  layout_->magic.store(SharedCardLayout::kMagic, std::memory_order_release);
  return 0;
}

int SharedCard::attach(const std::string& device_name) {
  std::string name;
  if (const int rc = zone_name(device_name, &name); rc != 0) {
    return rc;
  }
  const rte_memzone* zone = rte_memzone_lookup(name.c_str());
  if (zone == nullptr) {
    base::log_error("%s: the primary process has no such card: give it --vdev=%s",
                    device_name.c_str(), device_name.c_str());
    return -ENOENT;
  }
  auto* layout = static_cast<SharedCardLayout*>(zone->addr);
  // acquire: pairs with the release in create()
  if (layout->magic.load(std::memory_order_acquire) != SharedCardLayout::kMagic ||
      layout->version != SharedCardLayout::kVersion) {
    base::log_error("%s: the primary process runs another version of this driver",
                    device_name.c_str());
    return -EPROTO;
  }
  if (layout->pid_namespace != pid_namespace()) {
    base::log_error("%s: the primary process lives in another pid namespace: start both in one",
                    device_name.c_str());
    return -EXDEV;
  }
  const OwnerToken self = own_token();
  for (auto& place : layout->attached) {
    uint64_t seen = place.load(std::memory_order_acquire);
    // acq_rel: the former holder's stores are visible; pairs with the release in detach()
    if (self != 0 && (seen == 0 || !token_alive(seen)) &&
        place.compare_exchange_strong(seen, self, std::memory_order_acq_rel)) {
      zone_ = zone;
      layout_ = layout;
      primary_ = false;
      card_number_ = layout->card_number;
      return 0;
    }
  }
  base::log_error("%s: %u processes use the card already", device_name.c_str(),
                  SharedCardLayout::kMaxAttached);
  return -ENOSPC;
}

void SharedCard::detach() {
  if (layout_ == nullptr) {
    return;
  }
  for (uint32_t qp = 0; qp < layout_->queue_pairs; ++qp) {
    release(qp);
  }
  for (auto& place : layout_->attached) {
    uint64_t self = own_token();
    place.compare_exchange_strong(self, 0, std::memory_order_acq_rel);
  }
  if (primary_) {
    layout_->magic.store(0, std::memory_order_release);
    // A process that is still attached reads the tables: then the memzone stays.
    if (!others_alive()) {
      rte_memzone_free(zone_);
    }
  }
  layout_ = nullptr;
  zone_ = nullptr;
}

int SharedCard::claim(uint32_t qp, Bus& bus, OwnerToken* owner) {
  if (qp >= layout_->queue_pairs) {
    return -EINVAL;
  }
  const OwnerToken self = own_token();
  if (self == 0) {
    return -ESRCH;
  }
  for (;;) {
    uint64_t seen = 0;
    // acq_rel: the former owner's rings are stopped and its stores to the BAR are done; pairs with
    // the release in release() and reap()
    if (layout_->owners[qp].compare_exchange_strong(seen, self, std::memory_order_acq_rel)) {
      return 0;
    }
    if (token_alive(seen)) {
      if (owner != nullptr) {
        *owner = seen;
      }
      return -EBUSY;
    }
    if (const int rc = reap(bus); rc != 0) {
      return rc;
    }
  }
}

void SharedCard::release(uint32_t qp) {
  uint64_t self = own_token();
  // release: all use of the queue pair is over; pairs with the acquire in claim()
  layout_->owners[qp].compare_exchange_strong(self, 0, std::memory_order_acq_rel);
}

OwnerToken SharedCard::owner(uint32_t qp) const {
  return qp < layout_->queue_pairs ? layout_->owners[qp].load(std::memory_order_acquire) : 0;
}

bool SharedCard::others_alive() const {
  const OwnerToken self = own_token();
  const auto other = [self](const std::atomic<uint64_t>& place) {
    const uint64_t seen = place.load(std::memory_order_acquire);
    return seen != 0 && seen != self && token_alive(seen);
  };
  return std::ranges::any_of(layout_->owners, other) ||
         std::ranges::any_of(layout_->attached, other);
}

/// Becomes the reaper, or waits until there is none.
int SharedCard::reap(Bus& bus) {
  const OwnerToken self = own_token();
  for (uint32_t waited_ms = 0;; ++waited_ms) {
    uint64_t seen = 0;
    // acq_rel: pairs with the release at the end of the last reaper
    if (layout_->reaper.compare_exchange_strong(seen, self, std::memory_order_acq_rel) ||
        (!token_alive(seen) &&
         layout_->reaper.compare_exchange_strong(seen, self, std::memory_order_acq_rel))) {
      break;
    }
    if (waited_ms == kReaperWaitMs) {
      base::log_error("%s: process %u has been cleaning up after a dead one for %u s",
                      bus.name().c_str(), token_pid(seen), kReaperWaitMs / 1000);
      return -ETIMEDOUT;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const int rc = stop_dead_rings(bus);
  layout_->reaper.store(0, std::memory_order_release);
  return rc;
}

int SharedCard::stop_dead_rings(Bus& bus) {
  // Each dead process is handled once: one that dies while this runs is left to the next reaper.
  std::set<OwnerToken> dead;
  for (uint32_t qp = 0; qp < layout_->queue_pairs; ++qp) {
    const uint64_t seen = layout_->owners[qp].load(std::memory_order_acquire);
    if (seen != 0 && !dead.contains(seen) && !token_alive(seen)) {
      dead.insert(seen);
    }
  }
  for (uint32_t qp = 0; qp < layout_->queue_pairs; ++qp) {
    const uint64_t seen = layout_->owners[qp].load(std::memory_order_acquire);
    if (!dead.contains(seen)) {
      continue;
    }
    if (const int rc = stop_orphan(bus, qp); rc != 0) {
      base::log_error("%s: queue pair %u of dead process %u does not stop: reset the card",
                      bus.name().c_str(), qp, token_pid(seen));
      return rc;
    }
  }
  for (const OwnerToken token : dead) {
    const uint32_t zones = free_zones(zone_tag(token));
    base::log_info(
        "%s: process %u died with the card open: its queue pairs are stopped, %u memzones "
        "freed",
        bus.name().c_str(), token_pid(token), zones);
  }
  // Only now: if this reaper had died before, another one would have had to repeat its work.
  for (uint32_t qp = 0; qp < layout_->queue_pairs; ++qp) {
    uint64_t seen = layout_->owners[qp].load(std::memory_order_acquire);
    if (dead.contains(seen)) {
      layout_->owners[qp].compare_exchange_strong(seen, 0, std::memory_order_acq_rel);
    }
  }
  return 0;
}

}  // namespace rio::pmd
