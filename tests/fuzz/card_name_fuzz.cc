// Any text as the name of a card, in each place where a card is named: it is refused, or in range.
#include <cstdint>
#include <cstdlib>

#include "fpga/name/keys.hpp"
#include "fpga/name/parse.hpp"

namespace {

using namespace rio::name;

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

struct InRange {
  void operator()(const Cable& c) const { require(!c.name.empty() && c.name.size() <= 63); }
  void operator()(const Switched& s) const { require(!s.topology.empty() && !s.at.empty()); }
  void operator()(const Shm& s) const {
    require(!s.fabric.empty() && s.fabric.size() <= 63 && s.fabric.front() != '.');
    require(s.fabric.find('/') == std::string::npos && s.board.size() <= 31 && s.queue_pair <= 30);
  }
  void operator()(const Udp& u) const {
    require(!u.fabric.empty() && u.patience_s >= 1 && u.patience_s <= 3600);
    require(u.loss_rate >= 0.0 && u.loss_rate <= 1.0);
  }
  void operator()(const Relay& r) const {
    require(!r.name.empty() && r.name.front() != '.' && (r.board < 64 || r.board == ~0u));
  }
  void operator()(const Sim& s) const {
    require(!s.socket.empty() && s.socket.size() <= 107 && s.wait_ms <= 60000);
  }
  void operator()(const Pci& p) const { require(p.address.empty() || p.address.size() >= 12); }
  void operator()(const Guest& g) const { require(!g.ram.empty() && g.monitor.size() <= 107); }
  void operator()(const Plain& p) const {
    require(!p.bar.empty());
    (*this)(p.guest);
  }
  void operator()(const Doorbell& d) const {
    require(!d.socket.empty() && d.socket.size() <= 107 && d.vectors >= 1 && d.vectors <= 64);
    (*this)(d.guest);
  }
  void operator()(const Listen& l) const { require(!l.socket.empty() && l.socket.size() <= 107); }
};

}  // namespace

// Input: a byte (the place) and the text.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const Place place = static_cast<Place>(data[0] % 4);
  const std::string_view text{reinterpret_cast<const char*>(data) + 1, size - 1};
  CardName name;
  std::string error;
  static_cast<void>(wire_of(text));
  if (parse(place, text, {}, &name, &error) != 0) {
    require(!error.empty());
    return 0;
  }
  const Model& model = name.model;
  require((row_of(name.kind).bit & kinds_at(place)) != 0);
  require(model.queue_pairs >= 1 && model.queue_pairs <= 31);
  require(model.fault_rate >= 0.0 && model.fault_rate <= 1.0);
  require(model.stepping != Stepping::kManual && name.id != UINT32_MAX);
  std::visit(InRange{}, name.kind);
  return 0;
}
