#include <unistd.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>

#include "base/bus_error.hpp"
#include "base/log.hpp"
#include "base/number.hpp"
#include "pmd/api/card_name.hpp"
#include "pmd/api/pollers.hpp"
#include "pmd/api/riopmd.hpp"
#include "pmd/dev/wait.hpp"

namespace rio {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr uint32_t kRailTimeoutMs = 1000;  // of a change of the rails block

}  // namespace

int catch_bus_errors() {
  return base::catch_bus_errors();
}

/// State that the Endpoints of one card share. The mutex is held by all that goes to the bus's or
/// the map's control functions.
struct Endpoint::Device {
  std::mutex mutex;
  std::unique_ptr<pmd::Bus> bus;
  std::unique_ptr<pmd::Card> card;
  std::unique_ptr<pmd::RailWatch> rail;
  std::unique_ptr<pmd::mem::MemoryMap> map;
  std::vector<uint32_t> dest_ids;  // by queue pair
  uint32_t endpoints = 0;          // that are not closed
  int owner = getpid();
};

bool Endpoint::is_ours() const {
  return device_ == nullptr || device_->owner == getpid();
}

Endpoint::Endpoint(std::shared_ptr<Device> device) : device_(std::move(device)) {
  const std::lock_guard lock(device_->mutex);
  ++device_->endpoints;
}

int Endpoint::open(const std::string& name, const EndpointConfig& config,
                   std::unique_ptr<Endpoint>* out) {
  std::unique_ptr<pmd::Bus> bus;
  if (const int rc = open_bus(name, &bus); rc != 0) {
    return rc;
  }
  return open(std::move(bus), config, out);
}

int Endpoint::open_all(const std::string& name, const EndpointConfig& config,
                       std::vector<std::unique_ptr<Endpoint>>* out) {
  std::vector<std::string> names;
  int rc = card_names(name, &names);
  std::vector<std::unique_ptr<Endpoint>> all;
  for (size_t i = 0; rc == 0 && i < names.size(); ++i) {
    rc = open(names[i], config, &all.emplace_back());
  }
  if (rc == 0) {
    *out = std::move(all);
  }
  return rc;
}

int Endpoint::open(std::unique_ptr<pmd::Bus> bus, const EndpointConfig& config,
                   std::unique_ptr<Endpoint>* out) {
  if (bus == nullptr) {
    return -EINVAL;
  }
  auto device = std::make_shared<Device>();
  device->bus = std::move(bus);
  pmd::CardConfig card = config.card;
  pmd::Caps caps{};
  const char* wrong = "";
  pmd::Mmio bar = device->bus->bar();
  (void)pmd::read_caps(bar, &caps, &wrong);  // if they are wrong, Card::open() says why
  const uint32_t own =
      caps.is_vf ? bar.read32(regs::qp::dest_id(0)) : device->bus->emulation().dest_id();
  if (own != 0 && ((config.dest_id != 0 && config.dest_id != own) ||
                   (!card.dest_ids.empty() && card.dest_ids.front() != own))) {
    base::log_error(
        "%s: the card has destID %u, and none other; give that, or 0, or id= in its name",
        device->bus->name().c_str(), own);
    return -EINVAL;
  }
  for (uint32_t qp = 0; caps.is_vf && qp < caps.queue_pairs; ++qp) {
    card.dest_ids.push_back(bar.read32(regs::qp::dest_id(qp)));
  }
  if (card.dest_ids.empty()) {
    const uint32_t first = own != 0 ? own : config.dest_id;
    for (uint32_t i = 0; i < caps.queue_pairs && first < pmd::Card::kNoDestId - i; ++i) {
      card.dest_ids.push_back(first + i);
    }
  }
  if (const int rc = pmd::Card::open(*device->bus, card, &device->card); rc != 0) {
    return rc;
  }
  device->dest_ids = card.dest_ids;
  device->dest_ids.resize(device->card->caps().queue_pairs, pmd::Card::kNoDestId);
  device->map = std::make_unique<pmd::mem::MemoryMap>(*device->bus);
  std::unique_ptr<Endpoint> endpoint(new Endpoint(std::move(device)));
  if (const int rc = endpoint->start(config); rc != 0) {
    return rc;
  }
  *out = std::move(endpoint);
  return 0;
}

int Endpoint::open_queue_pair(const EndpointConfig& config, std::unique_ptr<Endpoint>* out) {
  std::unique_ptr<Endpoint> endpoint(new Endpoint(device_));
  if (const int rc = endpoint->start(config); rc != 0) {
    return rc;
  }
  *out = std::move(endpoint);
  return 0;
}

int Endpoint::start(const EndpointConfig& config) {
  const std::lock_guard lock(device_->mutex);
  pmd::QueuePairConfig queues = config.queues;
  if (const int rc =
          irq_.prepare(*device_->bus, caps(), config.queue_pair, config.irq_rings, &queues);
      rc != 0) {
    return rc;
  }
  if (config.message_buffers != 0) {
    if (const int rc = pmd::mem::BufferPool::create(*device_->bus, config.message_buffers,
                                                    caps().shared_addr_align, &buffers_);
        rc != 0) {
      return rc;
    }
    if (const int rc = device_->map->adopt(buffers_->memory()); rc != 0) {
      buffers_.reset();
      return rc;
    }
  }
  if (const int rc = device_->card->open_queue_pair(config.queue_pair, queues, &pair_); rc != 0) {
    return rc;
  }
  dest_id_ = device_->dest_ids[config.queue_pair];
  return 0;
}

Endpoint::~Endpoint() {
  (void)close();
}

int Endpoint::close() {
  if (device_ == nullptr) {
    return 0;
  }
  if (!is_ours()) {
    keep_for_ever();
    return 0;
  }
  std::unique_lock lock(device_->mutex);
  const int rc = pair_ != nullptr ? pair_->stop() : 0;
  if (rc != 0 && rc != -ENODEV) {
    // The card may still write: nothing that it knows is given back, and the bus stays open.
    base::log_error(
        "%s: closed while the card does not answer; its memory stays allocated until the process "
        "ends. Reset the card by its slot before it is opened again",
        name().c_str());
    silence();  // before the process ends, and its memory with it
    lock.unlock();
    keep_for_ever();
    return rc;
  }
  pair_.reset();
  silence();
  free_memory();
  lock.unlock();
  device_.reset();
  return rc;
}

/// With the last Endpoint of the card, its accesses to memory end, even if others had to be kept.
void Endpoint::silence() {
  if (--device_->endpoints == 0) {
    device_->rail.reset();
    (void)device_->bus->stop_dma();  // logged
  }
}

/// Keep all objects: destroying them would write to the card, which in a forked child is the
/// parent's.
void Endpoint::keep_for_ever() {
  // Reachable, so that leak checkers stay quiet; never destroyed.
  struct Left {
    std::shared_ptr<Device> device;
    std::vector<UserMemory> registered;
    std::unique_ptr<pmd::mem::BufferPool> buffers;
    std::unique_ptr<pmd::QueuePair> pair;
  };
  static std::mutex mutex;
  static auto* all = new std::vector<Left>;
  const std::lock_guard lock(mutex);
  all->push_back({std::exchange(device_, nullptr), std::move(registered_), std::move(buffers_),
                  std::move(pair_)});
  allocated_.clear();
}

void Endpoint::free_memory() {
  registered_.clear();
  if (buffers_ != nullptr) {
    (void)device_->map->forget(buffers_->memory());
    buffers_.reset();
  }
  for (const pmd::DmaMemory& memory : allocated_) {
    if (device_->map->forget(memory) == 0) {  // not while another Endpoint has it registered
      device_->bus->dma_free(memory);
    }
  }
  allocated_.clear();
}

int Endpoint::open_dedicated(uint32_t i, uint32_t source, uint32_t mbox,
                             pmd::DedicatedRxQueue** out) {
  const std::lock_guard lock(device_->mutex);
  return pair_->open_dedicated(i, source, mbox, out);
}

int Endpoint::open_barriers() {
  const std::lock_guard lock(device_->mutex);
  return pair_->open_barriers();
}

int Endpoint::close_barriers() {
  const std::lock_guard lock(device_->mutex);
  return pair_->close_barriers();
}

int Endpoint::open_rail_watch(uint32_t period_us) {
  const std::lock_guard lock(device_->mutex);
  if (device_->rail != nullptr) {
    base::log_error("%s: the card writes its rail status already; read that, or close it first",
                    name().c_str());
    return -EBUSY;
  }
  return pmd::RailWatch::create(*device_->card, period_us, kRailTimeoutMs, &device_->rail);
}

int Endpoint::close_rail_watch() {
  const std::lock_guard lock(device_->mutex);
  if (device_->rail == nullptr) {
    return -ENOENT;
  }
  const int rc = device_->rail->close();
  device_->rail.reset();
  return rc;
}

const pmd::RailWatch* Endpoint::rail_watch() const {
  return device_->rail.get();
}

int Endpoint::close_dedicated(uint32_t i) {
  const std::lock_guard lock(device_->mutex);
  return pair_->close_dedicated(i);
}

pmd::Card& Endpoint::card() {
  return *device_->card;
}
const pmd::Caps& Endpoint::caps() const {
  return device_->card->caps();
}
std::string Endpoint::address() const {
  const pmd::Emulation& emulation = device_->bus->emulation();
  std::string at = emulation.address();
  const uint32_t own = emulation.dest_id();
  if (!at.empty() && dest_id_ != own) {
    at += "/" + std::to_string(dest_id_ - own);
  }
  return at;
}

int Endpoint::reach(const std::string& address, uint32_t* dest_id) {
  const size_t slash = address.find('/');
  uint32_t pair = 0;
  if (slash != std::string::npos &&
      !base::read_number(address.substr(slash + 1), 0, regs::kMaxQps - 1, &pair)) {
    return -EINVAL;
  }
  uint32_t first = 0;
  const int rc = device_->bus->emulation().reach(address.substr(0, slash), &first);
  if (rc == 0) {
    *dest_id = first + pair;
  }
  return rc;
}

int Endpoint::why_unreachable(uint32_t dest_id) {
  return device_->bus->emulation().why_unreachable(dest_id);
}

bool Endpoint::moves_directly(uint32_t dest_id) {
  return device_->bus->emulation().copies_once(dest_id);
}

bool Endpoint::shows_messages() const {
  return device_->bus->emulation().shows_messages();
}

const std::string& Endpoint::name() const {
  return device_->bus->name();
}

pmd::mem::AlignRules Endpoint::align_rules() const {
  const pmd::Caps& c = caps();
  return pmd::mem::align_rules(c.tx_addr_align, c.dedicated_addr_align, c.dedicated_size_align,
                               c.quirk_last_at_256 || c.quirk_last_full_256);
}

int Endpoint::wait_link(uint32_t timeout_ms) {
  pmd::Waiter waiter(device_->bus->poll_hook(0), timeout_ms);
  bool more = true;
  for (;;) {
    {
      const std::lock_guard lock(device_->mutex);
      if (device_->card->gone()) {
        base::log_error("%s: card is gone (its magic reads all ones); check slot, link and power",
                        name().c_str());
        return -ENODEV;
      }
      if (device_->card->link().up) {
        return 0;
      }
    }
    if (!more) {
      base::log_error(
          "%s: no link within %u ms; open the card at the other end, or check the cable",
          name().c_str(), timeout_ms);
      return -ETIMEDOUT;
    }
    more = waiter.pause();
  }
}

int Endpoint::alloc(size_t len_bytes, size_t align_bytes, pmd::DmaMemory* out) {
  if (len_bytes == 0 || len_bytes > SIZE_MAX - kPageBytes || !std::has_single_bit(align_bytes)) {
    base::log_error(
        "%s: %zu bytes aligned to %zu asked for; take at least 1, aligned to a power of two",
        name().c_str(), len_bytes, align_bytes);
    return -EINVAL;
  }
  const std::lock_guard lock(device_->mutex);
  pmd::DmaMemory memory;
  const size_t pages = (len_bytes + kPageBytes - 1) & ~(kPageBytes - 1);
  if (const int rc = device_->bus->dma_alloc(pages, std::max(align_bytes, kPageBytes), &memory);
      rc != 0) {
    return rc;
  }
  if (const int rc = device_->map->adopt(memory); rc != 0) {
    device_->bus->dma_free(memory);
    return rc;
  }
  allocated_.push_back(memory);
  *out = {memory.va, memory.iova, len_bytes};
  return 0;
}

int Endpoint::free(const pmd::DmaMemory& memory) {
  if (!is_ours()) {
    return 0;  // freed when this process ends
  }
  const std::lock_guard lock(device_->mutex);
  const auto it = std::find_if(allocated_.begin(), allocated_.end(),
                               [&](const pmd::DmaMemory& m) { return m.va == memory.va; });
  if (it == allocated_.end()) {
    base::log_error("%s: %p was not allocated here, or is free already", name().c_str(), memory.va);
    return -ENOENT;
  }
  if (const int rc = device_->map->forget(*it); rc != 0) {
    base::log_error("%s: memory at %p is registered, too; unregister it first", name().c_str(),
                    memory.va);
    return rc;
  }
  device_->bus->dma_free(*it);
  allocated_.erase(it);
  return 0;
}

int Endpoint::register_memory(void* va, size_t len_bytes, const pmd::mem::Region** region) {
  const std::lock_guard lock(device_->mutex);
  UserMemory memory{va, len_bytes, {}};
  if (const int rc = device_->map->register_range(va, len_bytes, &memory.registration); rc != 0) {
    return rc;
  }
  if (region != nullptr) {
    *region = memory.registration.get();
  }
  registered_.push_back(std::move(memory));
  return 0;
}

template <class Match>
bool Endpoint::drop_registration(const Match& match) {
  const std::lock_guard lock(device_->mutex);
  const auto it = std::find_if(registered_.begin(), registered_.end(), match);
  if (it == registered_.end()) {
    return false;
  }
  registered_.erase(it);
  return true;
}

int Endpoint::unregister_memory(void* va, size_t len_bytes) {
  if (drop_registration(
          [=](const UserMemory& m) { return m.va == va && m.len_bytes == len_bytes; })) {
    return 0;
  }
  base::log_error("%s: %zu bytes at %p are not registered; give address and length as registered",
                  name().c_str(), len_bytes, va);
  return -ENOENT;
}

int Endpoint::unregister_memory(const pmd::mem::Region* region) {
  if (drop_registration([=](const UserMemory& m) { return m.registration.get() == region; })) {
    return 0;
  }
  base::log_error("%s: a region is not registered; give one of register_memory()", name().c_str());
  return -ENOENT;
}

int Endpoint::iova(const void* va, size_t len_bytes, uint64_t* iova) {
  const std::lock_guard lock(device_->mutex);
  return device_->map->lookup(va, len_bytes, iova);
}

uint32_t Endpoint::numa_distance() const {
  return rio::numa_distance(device_->bus->numa_node());
}

int Endpoint::pin_poller(const std::string& cpus) const {
  return rio::pin_poller({.pci_address = name(), .numa_node = device_->bus->numa_node()}, cpus);
}

}  // namespace rio
