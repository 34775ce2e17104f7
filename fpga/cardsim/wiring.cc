#include "fpga/cardsim/wiring.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "fpga/cardsim/complain.hpp"

namespace rio::cardsim {
namespace {

constexpr size_t kCableCards = 2;
constexpr size_t kFabricCards = 16;

/// The difference of two topologies, except for `present` and `silent`; empty if there is none.
std::string difference(const wire::switched::Topology& now,
                       const wire::switched::Topology& wanted) {
  if (now.devices.size() != wanted.devices.size()) {
    return "it has " + std::to_string(wanted.devices.size()) + " devices, not " +
           std::to_string(now.devices.size());
  }
  for (size_t i = 0; i < now.devices.size(); ++i) {
    wire::switched::DeviceSpec device = wanted.devices[i];
    device.present = now.devices[i].present;
    device.silent = now.devices[i].silent;
    if (device != now.devices[i]) {
      return "device " + device.name + " differs";
    }
  }
  if (now.links != wanted.links) {
    return "its links differ";
  }
  return now.loss_seed == wanted.loss_seed && now.loss_rate == wanted.loss_rate
             ? ""
             : "its loss differs";
}

[[nodiscard]] int check(const std::vector<CardSpec>& specs, const std::string& topology) {
  if (topology.empty() && specs.size() > kCableCards) {
    complain("%zu cards; give one or two --card, or a --fabric for more", specs.size());
    return -EINVAL;
  }
  if (specs.size() > kFabricCards) {
    complain("%zu cards; give at most %zu --card", specs.size(), kFabricCards);
    return -EINVAL;
  }
  for (const CardSpec& spec : specs) {
    if (spec.at.empty() == topology.empty()) {
      continue;
    }
    if (topology.empty()) {
      complain("%s: at=%s, and no fabric; give --fabric TOPOLOGY.json", spec.name.c_str(),
               spec.at.c_str());
    } else {
      complain("%s: where in the fabric? add at=ENDPOINT to its --card", spec.name.c_str());
    }
    return -EINVAL;
  }
  return 0;
}

}  // namespace

int Wiring::create(const std::vector<CardSpec>& specs, const std::string& topology,
                   std::unique_ptr<Wiring>* out) {
  if (const int rc = check(specs, topology); rc != 0) {
    return rc;
  }
  std::unique_ptr<Wiring> made(new Wiring);
  if (topology.empty()) {
    made->cable_ = specs.size() > 1 ? model::make_cable() : nullptr;
    *out = std::move(made);
    return 0;
  }
  std::string error;
  made->path_ = topology;
  if (const int rc = wire::switched::load_topology(topology, &made->topology_, &error); rc != 0) {
    complain("--fabric: %s", error.c_str());
    return rc;
  }
  if (const int rc = wire::switched::Fabric::create(made->topology_, nullptr, &made->fabric_);
      rc != 0) {
    complain("--fabric %s: %s; take a smaller one", topology.c_str(), std::strerror(-rc));
    return rc;
  }
  std::vector<std::unique_ptr<model::Wire>> tried(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    if (const int rc = made->fabric_->plug(specs[i].at, &tried[i]); rc != 0) {
      complain("%s: at=%s: %s", specs[i].name.c_str(), specs[i].at.c_str(),
               rc == -EBUSY ? "another card is there; take another endpoint"
                            : "no such endpoint; name one of the topology file");
      return rc;
    }
  }
  *out = std::move(made);
  return 0;
}

int Wiring::change(const wire::switched::DeviceSpec& wanted, wire::switched::DeviceSpec* now) {
  if (now->present != wanted.present) {
    if (const int rc = fabric_->set_device(wanted.name, wanted.present); rc != 0) {
      return rc;
    }
    now->present = wanted.present;
    std::printf("rio-cardsim: %s has %s\n", wanted.name.c_str(), wanted.present ? "come" : "gone");
  }
  if (now->silent != wanted.silent) {
    if (const int rc = fabric_->set_silent(wanted.name, wanted.silent); rc != 0) {
      return rc;
    }
    now->silent = wanted.silent;
    std::printf("rio-cardsim: %s %s\n", wanted.name.c_str(),
                wanted.silent ? "has fallen silent" : "answers again");
  }
  return 0;
}

void Wiring::reload() {
  wire::switched::Topology wanted;
  std::string error;
  if (wire::switched::load_topology(path_, &wanted, &error) == 0) {
    error = difference(topology_, wanted);
    error = error.empty() ? "" : path_ + ": " + error + "; restart rio-cardsim for that";
  }
  if (!error.empty()) {
    complain("--fabric: %s; the fabric stays as it was", error.c_str());
    return;
  }
  for (size_t i = 0; i < wanted.devices.size(); ++i) {
    if (const int rc = change(wanted.devices[i], &topology_.devices[i]); rc != 0) {
      complain("--fabric: %s: %s; restart rio-cardsim", wanted.devices[i].name.c_str(),
               std::strerror(-rc));
    }
  }
  std::puts("rio-cardsim: fabric read again");
  std::fflush(stdout);
}

SimCard::Plug Wiring::plug(size_t card, const std::string& at) const {
  if (fabric_ != nullptr) {
    return [fabric = fabric_, at] {
      std::unique_ptr<model::Wire> wire;
      static_cast<void>(fabric->plug(at, &wire));  // null: the card is refused, which is reported
      return wire;
    };
  }
  return [cable = cable_, card] {
    return cable == nullptr ? model::make_loop_wire() : cable->plug(static_cast<int>(card));
  };
}

}  // namespace rio::cardsim
