#include "fpga/sim/wiring.hpp"

#include <cerrno>
#include <cstring>

#include "fpga/sim/complain.hpp"

namespace rio::sim {
namespace {

constexpr size_t kCableCards = 2;
constexpr size_t kFabricCards = 16;

}  // namespace

int Wiring::check(const std::vector<CardSpec>& specs, const std::string& topology) const {
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

int Wiring::create(const std::vector<CardSpec>& specs, const std::string& topology,
                   std::unique_ptr<Wiring>* out) {
  std::unique_ptr<Wiring> made(new Wiring);
  if (const int rc = made->check(specs, topology); rc != 0) {
    return rc;
  }
  for (const CardSpec& spec : specs) {
    made->at_.push_back(spec.at);
  }
  if (topology.empty()) {
    made->cable_ = specs.size() > 1 ? model::make_cable() : nullptr;
    *out = std::move(made);
    return 0;
  }
  Topology parsed;
  std::string error;
  if (const int rc = load_topology(topology, &parsed, &error); rc != 0) {
    complain("--fabric: %s", error.c_str());
    return rc;
  }
  if (const int rc = Fabric::create(std::move(parsed), nullptr, &made->fabric_); rc != 0) {
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

SimCard::Plug Wiring::plug(size_t card) const {
  if (fabric_ != nullptr) {
    return [fabric = fabric_, at = at_[card]] {
      std::unique_ptr<model::Wire> wire;
      static_cast<void>(fabric->plug(at, &wire));  // null: the card is refused, which is told
      return wire;
    };
  }
  return [cable = cable_, card] {
    return cable == nullptr ? model::make_loop_wire() : cable->plug(static_cast<int>(card));
  };
}

}  // namespace rio::sim
