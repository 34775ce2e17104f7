/// @file
/// A fabric whose devices lie, for tests of the enumerator: it does what no honest model does.
#pragma once

#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "lib/enumerate/csr.hpp"
#include "lib/enumerate/maint_access.hpp"

namespace rio::enumerate {

/// A device with registers, honest until told otherwise.
struct FakeDevice {
  std::map<uint32_t, uint32_t> words;
  std::map<uint32_t, uint32_t> routes;
  std::map<uint32_t, FakeDevice*> peers;  ///< by port
  uint32_t in_port = 0;
  uint32_t reads = 0;
  uint32_t toggles = 0;  ///< writes of the lock
  /// Called at each read; returns the value to report, or nothing for the true one.
  std::function<std::optional<uint32_t>(uint32_t offset)> lie;
  /// Called at each write; returns false if the write is to be dropped.
  std::function<bool(uint32_t offset)> keeps;
  /// Called at each access; returns true if the answer is lost. A write is carried out all the
  /// same.
  std::function<bool(uint32_t offset)> loses;
  /// Called at each write; returns true if its answer is lost. The write is carried out all the
  /// same.
  std::function<bool(uint32_t offset)> loses_write;

  [[nodiscard]] bool is_switch() const { return (words.at(Csr::kFeatures) & kSwitchFeature) != 0; }
  [[nodiscard]] uint32_t read(uint32_t offset) {
    ++reads;
    if (lie) {
      if (const std::optional<uint32_t> lied = lie(offset)) {
        return *lied;
      }
    }
    if (offset == Csr::kSwitchPort && is_switch()) {
      return words[offset] | in_port;
    }
    if (offset == Csr::kRoutePort) {
      const auto it = routes.find(words[Csr::kRouteDestId]);
      return it == routes.end() ? kNoRoute : it->second;
    }
    return words[offset];
  }
  void write(uint32_t offset, uint32_t value) {
    toggles += offset == Csr::kHostLock ? 1 : 0;
    if (keeps && !keeps(offset)) {
      return;
    }
    uint32_t& word = words[offset];
    if (offset == Csr::kHostLock) {
      word = word == kUnlocked ? value : word == value ? kUnlocked : word;
    } else if (offset == Csr::kRoutePort) {
      routes[words[Csr::kRouteDestId]] = value;
    } else {
      word = value;
    }
  }
};

/// The card's own registers, and whatever is plugged into it.
class FakeFabric : public MaintAccess {
 public:
  FakeFabric() { own = make(0, 0); }

  /// A new device, unplugged. @param ports 0: an endpoint.
  FakeDevice* make(uint32_t identity, uint32_t ports) {
    auto device = std::make_unique<FakeDevice>();
    device->words[Csr::kDeviceIdentity] = identity == 0 ? 0x1234000Eu : identity;
    device->words[Csr::kFeatures] = ports > 0 ? kSwitchFeature : 0;
    device->words[Csr::kSwitchPort] = ports << 8;
    device->words[Csr::kTableLimit] = ports > 0 ? 255 : 0;
    device->words[Csr::kHostLock] = kUnlocked;
    devices.push_back(std::move(device));
    return devices.back().get();
  }
  static void plug(FakeDevice* a, uint32_t a_port, FakeDevice* b, uint32_t b_port) {
    a->peers[a_port] = b;
    b->peers[b_port] = a;
  }

  int read(const Address& at, uint32_t offset, uint32_t* value) override {
    FakeDevice* device = find(at);
    if (device == nullptr || (!at.is_own_card && device->loses && device->loses(offset))) {
      return -ETIMEDOUT;
    }
    *value = device->read(offset);
    return 0;
  }
  int write(const Address& at, uint32_t offset, uint32_t value) override {
    FakeDevice* device = find(at);
    if (device == nullptr) {
      return -ETIMEDOUT;
    }
    device->write(offset, value);
    const bool lost = (device->loses && device->loses(offset)) ||
                      (device->loses_write && device->loses_write(offset));
    return lost && !at.is_own_card ? -ETIMEDOUT : 0;
  }

  FakeDevice* own;  ///< plug the rest into its port 0
  std::vector<std::unique_ptr<FakeDevice>> devices;
  /// Makes the device behind a port where nothing is plugged in; null: there is none.
  std::function<FakeDevice*(FakeDevice* device, uint32_t port)> grow;
  uint32_t accesses = 0;

 private:
  [[nodiscard]] static uint32_t port_toward(const FakeDevice& from, const FakeDevice& to) {
    for (const auto& [port, peer] : to.peers) {
      if (peer == &from) {
        return port;
      }
    }
    return 0;
  }
  [[nodiscard]] FakeDevice* find(const Address& at) {
    if (at.is_own_card) {
      return own;
    }
    ++accesses;
    FakeDevice* device = own;
    uint32_t port = 0;
    for (uint32_t hops = at.hops;; --hops) {
      if (!device->peers.contains(port) && grow) {
        grow(device, port);
      }
      const auto next = device->peers.find(port);
      if (next == device->peers.end()) {
        return nullptr;
      }
      next->second->in_port = port_toward(*device, *next->second);
      device = next->second;
      if (hops == 0 || !device->is_switch()) {
        return device;
      }
      const auto route = device->routes.find(at.dest_id);
      if (route == device->routes.end()) {
        return nullptr;
      }
      port = route->second;
    }
  }
};

}  // namespace rio::enumerate
