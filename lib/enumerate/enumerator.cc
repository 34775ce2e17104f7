#include "lib/enumerate/enumerator.hpp"

#include <algorithm>
#include <cerrno>

#include "lib/enumerate/csr.hpp"

namespace rio::enumerate {
namespace {

constexpr uint32_t kLargeIds = 0xFFFF;
constexpr uint32_t kTidyAccesses = 64;  // of each device
constexpr std::chrono::seconds kTidyTime(30);

/// Describe a device that visit() left alone. @param why set if it answered at first.
Problem problem_of(int rc, const std::string& where, const std::string& why) {
  if (rc == -ENOSPC) {
    return {"ids", where, why, "use 16-bit destIDs (--id-bits 16), or switches with larger tables"};
  }
  if (rc == -EPROTO || rc == -EIO) {
    return {"lying", where, why.empty() ? "it answers ERROR" : why,
            "look at the device with its own tools; it was left alone"};
  }
  if (why.empty()) {
    return {"silent", where, "it does not answer",
            "look at the device's power and clock, then enumerate again"};
  }
  return {"lost", where, why, "look at its power and its link, then enumerate again"};
}

}  // namespace

Enumerator::Enumerator(MaintAccess& access, const EnumerateOptions& options)
    : options_(options),
      access_(access, options.limits),
      lock_(access_, options.host_id, options.steal),
      router_(access_, map_),
      id_limit_(options.large ? kLargeIds : kSmallIds) {}

int Enumerator::run(FabricMap* out) {
  int rc = lock_own_card();
  const bool ours = rc != -EBUSY;
  rc = rc != 0 ? rc : visit({0, 0});
  rc = rc != 0 ? rc : each(true, [this](size_t node) { return explore_switch(node); });
  rc = rc != 0 ? rc : give_way();
  rc = rc != 0 ? rc : each(true, [this](size_t node) { return set_routes(node); });
  rc = rc != 0 ? rc : each(false, [this](size_t node) { return verify(node); });
  if (rc == -ETIME) {
    map_.problems.push_back(
        {"limit", "the fabric",
         "it was interrupted, or the limit of time or accesses was reached; what was found so far "
         "is shown",
         "run it again; raise --limit, or look at what answers slowly"});
  }
  const int tidied = ours ? tidy_up() : 0;
  *out = std::move(map_);
  return rc != 0 ? rc : tidied;
}

int Enumerator::lock_own_card() {
  Node card;
  uint32_t holder = kUnlocked;
  bool was_ours = false;
  int rc = access_.read(kOwnCard, Csr::kDeviceIdentity, &card.identity);
  card.tag = 1;
  card.dest_id = options_.host_id;
  map_.nodes.push_back(card);
  rc = rc != 0 ? rc : lock_.acquire(kOwnCard, &holder, &was_ours);
  if (rc == -EBUSY) {
    is_locked(map_.name(0), holder);
  }
  return rc != 0 ? rc : access_.write(kOwnCard, Csr::kComponentTag, card.tag);
}

int Enumerator::each(bool switches, const std::function<int(size_t node)>& step) {
  for (size_t i = 1; i < map_.nodes.size(); ++i) {
    const int rc = map_.nodes[i].is_switch == switches ? step(i) : 0;
    if (is_of_device(rc)) {
      map_.problems.push_back({"lost", map_.name(i), "it answered, and stopped answering",
                               "look at its power and its link, then enumerate again"});
    } else if (rc != 0) {
      return rc;
    }
  }
  return 0;
}

int Enumerator::explore_switch(size_t node) {
  const Node self = map_.nodes[node];  // a copy: the map grows
  map_.nodes[node].ports[self.entry_port] = {PortView::kUp, self.parent, self.parent_port, ""};
  Address at;
  int rc = router_.reach(node, &at);
  if (rc == 0 && self.error_management != 0) {
    const uint32_t target = options_.host_id << 16 | (options_.large ? kTargetIsLarge : 0);
    rc = access_.write(at, self.error_management + kPortWriteTarget, target);
  }
  for (uint32_t port = 0; port < self.ports.size() && rc == 0; ++port) {
    PortView& view = map_.nodes[node].ports[port];
    if (view.state != PortView::kUnknown) {
      continue;
    }
    uint32_t status = kPortOk;
    if (self.lp_serial != 0) {
      rc = router_.reach(node, &at);
      rc = rc != 0 ? rc : access_.read(at, port_status(self.lp_serial, port), &status);
    }
    if (rc == 0 && (status & kPortOk) == 0) {
      view.state = PortView::kDown;
    } else if (rc == 0) {
      rc = visit({node, port});
    }
  }
  return rc;
}

// A fault of the device there is a problem in the map, and no error; only a fault of the way is
// one.
int Enumerator::visit(const Place& parent) {
  if (map_.nodes.size() > options_.nodes) {
    return -ETIME;
  }
  Address at;
  if (const int rc = router_.reach_behind(parent, &at); rc != 0) {
    return rc;
  }
  PortView view;
  view.state = PortView::kSkipped;
  const int rc = introduce(at, parent, &view);
  if (is_of_device(rc) && half_way_.node != kNoNode) {
    // A device that is left alone is not left locked. The failure was reported before.
    (void)lock_.release(at);
    half_way_ = {};
  }
  if (view.state == PortView::kSkipped && is_of_device(rc)) {
    map_.problems.push_back(problem_of(rc, map_.place(parent), view.why));
    view.why = map_.problems.back().what;
  }
  if (parent.node == 0 && view.state == PortView::kLoop) {
    map_.problems.push_back(
        {"loop", map_.name(0), "the card hears itself", "plug its link into a fabric"});
  }
  if (map_.nodes[parent.node].is_switch) {
    map_.nodes[parent.node].ports[parent.port] = view;
  }
  return is_of_device(rc) ? 0 : rc;
}

int Enumerator::introduce(const Address& at, const Place& parent, PortView* view) {
  uint32_t identity = 0;
  if (const int rc = access_.read(at, Csr::kDeviceIdentity, &identity); rc != 0) {
    return rc;
  }
  uint32_t holder = kUnlocked;
  bool was_ours = false;
  half_way_ = parent;
  int rc = lock_.acquire(at, &holder, &was_ours);
  if (rc == -EBUSY) {
    half_way_ = {};
    view->why = is_locked(map_.place(parent), holder);
    const int asked = reserve_dest_id_of(at);
    return is_of_device(asked) ? 0 : asked;
  }
  if (rc != 0) {
    view->why = rc == -EPROTO ? "its host lock does not hold" : "it stopped answering";
    return rc;
  }
  if (was_ours) {
    size_t known = kNoNode;
    if (rc = find_seen(at, parent, &known); rc != 0) {
      view->why = "it stopped answering";
      return rc;
    }
    if (known != kNoNode) {
      half_way_ = {};
      return close_loop(at, parent, known, view);
    }
  }
  Node node;
  rc = admit(at, identity, parent, &node, &view->why);
  if (rc != 0) {
    view->why = view->why.empty() && rc == -ETIMEDOUT ? "it stopped answering" : view->why;
    return rc;
  }
  *view = {PortView::kNode, map_.nodes.size(), node.entry_port, ""};
  map_.nodes.push_back(std::move(node));
  half_way_ = {};
  return 0;
}

// A device that keeps what is written, and whose answers fit together, belongs to the fabric.
int Enumerator::admit(const Address& at, uint32_t identity, const Place& parent, Node* node,
                      std::string* why) {
  if (const int rc = inquire(access_, at, node, why); rc != 0) {
    return rc;
  }
  if (node->identity != identity) {
    *why = "its identity changes while one looks";
    return -EPROTO;
  }
  node->parent = parent.node;
  node->parent_port = parent.port;
  node->hops = at.hops;
  node->tag = static_cast<uint32_t>(map_.nodes.size()) + 1;
  if (const int rc = mark(at, Csr::kComponentTag, node->tag, ~0u, "component tag", why); rc != 0) {
    return rc;
  }
  if (node->is_switch) {
    id_limit_ = std::min(id_limit_, node->table_entries);
    if (const int rc = router_.set_route(at, options_.host_id, node->entry_port); rc != 0) {
      return rc;
    }
    uint32_t kept = 0;
    const int rc = router_.get_route(at, options_.host_id, &kept);
    if (rc == 0 && kept != node->entry_port) {
      *why = "its route table does not keep what is written";
      return -EPROTO;
    }
    return rc;
  }
  return give_dest_id(at, node, why);
}

int Enumerator::give_dest_id(const Address& at, Node* node, std::string* why) {
  uint32_t id = last_id_ + 1;
  while (is_taken(id)) {
    ++id;
  }
  if (id >= id_limit_) {
    *why = "no destID is left for it: the switches' tables hold " + std::to_string(id_limit_) +
           " of them";
    return -ENOSPC;
  }
  const uint32_t word = options_.large ? 0x00FF0000u | id : id << 16 | 0xFFFFu;
  const uint32_t mask = options_.large ? 0x0000FFFFu : 0x00FF0000u;
  if (const int rc = mark(at, Csr::kBaseDeviceId, word, mask, "destID", why); rc != 0) {
    return rc;
  }
  node->dest_id = last_id_ = id;
  return 0;
}

int Enumerator::mark(const Address& at, uint32_t offset, uint32_t value, uint32_t mask,
                     const char* what, std::string* why) {
  uint32_t kept = 0;
  int rc = access_.write(at, offset, value);
  rc = rc != 0 ? rc : access_.read(at, offset, &kept);
  if (rc == 0 && ((kept ^ value) & mask) != 0) {
    *why = std::string("it does not keep its ") + what;
    return -EPROTO;
  }
  return rc;
}

// Ours before we came: found before by this run, or left behind by one that was interrupted, whose
// tags say nothing. So another tag is written here, and looked for there.
int Enumerator::find_seen(const Address& at, const Place& parent, size_t* known) {
  uint32_t tag = 0;
  if (const int rc = access_.read(at, Csr::kComponentTag, &tag); rc != 0) {
    return rc;
  }
  if (tag == 0 || tag > map_.nodes.size()) {
    return 0;
  }
  const size_t candidate = tag - 1;
  uint32_t there = 0;
  Address address;
  int rc = access_.write(at, Csr::kComponentTag, ~tag);
  rc = rc != 0 ? rc : router_.reach(candidate, &address);
  const int asked =
      rc != 0 ? rc : access_.read(candidate == 0 ? kOwnCard : address, Csr::kComponentTag, &there);
  rc = router_.reach_behind(parent, &address);
  rc = rc != 0 ? rc : access_.write(at, Csr::kComponentTag, tag);
  if (rc == 0 && asked == 0 && there == ~tag) {
    *known = candidate;
  }
  return asked == -ETIME ? asked : rc;
}

int Enumerator::close_loop(const Address& at, const Place& parent, size_t known, PortView* view) {
  uint32_t word = 0;
  if (map_.nodes[known].is_switch) {
    if (const int rc = access_.read(at, Csr::kSwitchPort, &word); rc != 0) {
      return rc;
    }
  }
  *view = {PortView::kLoop, known, word & 0xFF, ""};
  std::vector<PortView>& ports = map_.nodes[known].ports;
  if (view->peer_port < ports.size() && ports[view->peer_port].state == PortView::kUnknown) {
    ports[view->peer_port] = {PortView::kLoop, parent.node, parent.port, ""};
  }
  return 0;
}

bool Enumerator::is_taken(uint32_t dest_id) const {
  return dest_id == options_.host_id || dest_id == kProbeId || reserved_.contains(dest_id) ||
         lock_.others().contains(dest_id);
}

// An endpoint that another host holds keeps the destID that it has.
int Enumerator::reserve_dest_id_of(const Address& at) {
  uint32_t word = 0;
  int rc = access_.read(at, Csr::kFeatures, &word);
  const bool is_switch = (word & kSwitchFeature) != 0;
  rc = rc != 0 || is_switch ? rc : access_.read(at, Csr::kBaseDeviceId, &word);
  if (rc == 0 && !is_switch) {
    reserved_.insert(options_.large ? word & 0xFFFF : word >> 16 & 0xFF);
  }
  return rc;
}

// A host may be found after its destID was given to a device: that device gets another one.
int Enumerator::give_way() {
  for (size_t i = 1; i < map_.nodes.size(); ++i) {
    Node& node = map_.nodes[i];
    Address at;
    std::string why;
    if (node.is_switch || !is_taken(node.dest_id)) {
      continue;
    }
    int rc = router_.reach(i, &at);
    rc = rc != 0 ? rc : give_dest_id(at, &node, &why);
    if (rc != 0 && !is_of_device(rc)) {
      return rc;
    }
    if (rc != 0) {
      map_.problems.push_back(problem_of(rc, map_.place({node.parent, node.parent_port}),
                                         why.empty() ? "it stopped answering" : why));
      node.dest_id = kNoDestId;  // no route leads to it
    }
  }
  return 0;
}

// IDs without a device lead nowhere: routes of an earlier enumeration may go in circles.
int Enumerator::set_routes(size_t node) {
  const uint32_t last_id = std::max(options_.host_id, last_id_ == UINT32_MAX ? 0 : last_id_);
  std::vector<uint32_t> ports(std::max(kSmallIds, last_id + 1), kNoRoute);
  for (size_t i = 0; i < map_.nodes.size(); ++i) {
    if (!map_.nodes[i].is_switch && map_.nodes[i].dest_id != kNoDestId) {
      ports[map_.nodes[i].dest_id] = tree_route(map_, node, i);
    }
  }
  Address at;
  int rc = router_.reach(node, &at);
  for (uint32_t id = 0; id < ports.size() && rc == 0; ++id) {
    rc = id == kProbeId ? 0 : router_.set_route(at, id, ports[id]);
  }
  return rc;
}

int Enumerator::verify(size_t endpoint) {
  const Node& node = map_.nodes[endpoint];
  uint32_t tag = node.tag;
  const int rc = node.dest_id == kNoDestId
                     ? 0
                     : access_.read({node.dest_id, kToEndpoint}, Csr::kComponentTag, &tag);
  if (rc == 0 && tag != node.tag) {
    map_.problems.push_back({"changed", map_.name(endpoint), "another device answers by its destID",
                             "another host plugs or enumerates at the same time; enumerate again"});
  }
  return rc;
}

// From the last device back to the first, so that the way to each still stands.
int Enumerator::tidy_up() {
  access_.extend(static_cast<uint32_t>(map_.nodes.size()) * kTidyAccesses, kTidyTime);
  int failed = release_half_way();
  for (size_t i = map_.nodes.size() - 1; i > 0; --i) {
    Address at;
    int rc = router_.reach(i, &at);
    if (rc == 0 && map_.nodes[i].is_switch) {
      rc = router_.end_probe(i, at);
    }
    rc = rc != 0 ? rc : lock_.release(at);
    if (rc != 0) {
      stays_locked(map_.name(i));
    }
    failed = failed != 0 || is_of_device(rc) ? failed : rc;
  }
  const int rc = lock_.release(kOwnCard);
  return failed != 0 ? failed : rc;
}

// A run that was cut off in the middle of a device.
int Enumerator::release_half_way() {
  if (half_way_.node == kNoNode) {
    return 0;
  }
  Address at;
  int rc = router_.reach_behind(half_way_, &at);
  rc = rc != 0 ? rc : lock_.release(at);
  if (rc != 0) {
    stays_locked(map_.place(half_way_));
  }
  return is_of_device(rc) ? 0 : rc;
}

std::string Enumerator::is_locked(const std::string& where, uint32_t holder) {
  map_.problems.push_back({"locked", where, "it is locked by host " + std::to_string(holder),
                           "let that host finish, or break its lock with --steal"});
  return map_.problems.back().what;
}

void Enumerator::stays_locked(const std::string& where) {
  map_.problems.push_back({"unlock", where,
                           "it may stay locked by host " + std::to_string(options_.host_id),
                           "enumerate again as the same host"});
}

}  // namespace rio::enumerate
