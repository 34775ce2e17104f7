#include "lib/enumerate/looker.hpp"

#include <algorithm>
#include <cerrno>
#include <numeric>

#include "lib/enumerate/csr.hpp"
#include "lib/enumerate/inquiry.hpp"

namespace rio::enumerate {
namespace {

constexpr uint32_t kHopsMax = 254;
constexpr uint32_t kLargeIdsAsked = 4096;  // of 65536: each is two accesses at each switch

}  // namespace

Looker::Looker(MaintAccess& access, const EnumerateOptions& options)
    : options_(options),
      id_limit_(options.large ? kLargeIdsAsked : kSmallIds),
      access_(access, options.limits),
      router_(access_, map_) {}

int Looker::run(FabricMap* out) {
  const int rc = look();
  if (rc == -ETIME) {
    map_.problems.push_back({"limit", "the fabric",
                             "the limit of time or accesses was reached; what was seen is shown",
                             "raise --limit, or look at what answers slowly"});
  }
  *out = std::move(map_);
  return rc;
}

int Looker::look() {
  Node card;
  int failed = access_.read(kOwnCard, Csr::kDeviceIdentity, &card.identity);
  failed = failed != 0 ? failed : access_.read(kOwnCard, Csr::kComponentTag, &card.tag);
  if (failed != 0) {
    return failed;
  }
  card.dest_id = options_.host_id;
  map_.nodes.push_back(card);
  Ids all(id_limit_);
  std::iota(all.begin(), all.end(), 0u);
  std::erase(all, options_.host_id);
  ways_.push_back(all);
  if (const int rc = look_behind(0, 0, all); rc != 0) {
    return rc;
  }
  for (size_t i = 1; i < map_.nodes.size(); ++i) {
    const int rc = map_.nodes[i].is_switch ? read_switch(i) : 0;
    if (is_of_device(rc)) {
      map_.problems.push_back({"lost", map_.name(i), "it answered, and stopped answering",
                               "look at its power and its link"});
    } else if (rc != 0) {
      return rc;
    }
  }
  return 0;
}

int Looker::read_table(const Address& at, size_t node) {
  const uint32_t count = std::min(id_limit_, map_.nodes[node].table_entries);
  std::vector<uint32_t> routes(count, kNoRoute);
  int rc = 0;
  for (uint32_t id = 0; id < count && rc == 0; ++id) {
    rc = router_.get_route(at, id, &routes[id]);
  }
  if (rc == 0) {
    map_.nodes[node].routes = std::move(routes);
  }
  return rc;
}

int Looker::read_switch(size_t node) {
  const Node self = map_.nodes[node];  // copies: both vectors grow
  const Ids ways = ways_[node];
  const Address at{ways.front(), self.hops};
  map_.nodes[node].ports[self.entry_port] = {PortView::kUp, self.parent, self.parent_port, ""};
  int rc = read_table(at, node);
  for (uint32_t port = 0; port < self.ports.size() && rc == 0; ++port) {
    if (map_.nodes[node].ports[port].state != PortView::kUnknown) {
      continue;
    }
    uint32_t status = kPortOk;
    if (self.lp_serial != 0) {
      rc = access_.read(at, port_status(self.lp_serial, port), &status);
    }
    Ids through;
    const std::vector<uint32_t>& routes = map_.nodes[node].routes;
    std::copy_if(ways.begin(), ways.end(), std::back_inserter(through),
                 [&](uint32_t id) { return id < routes.size() && routes[id] == port; });
    if (rc == 0 && (status & kPortOk) == 0) {
      map_.nodes[node].ports[port].state = PortView::kDown;
    } else if (rc == 0 && !through.empty()) {
      rc = look_behind(node, port, std::move(through));
    }
  }
  return rc;
}

int Looker::ask(const Address& at, Node* node, std::string* why) {
  int rc = inquire(access_, at, node, why);
  rc = rc != 0 ? rc : access_.read(at, Csr::kComponentTag, &node->tag);
  rc = rc != 0 ? rc : access_.read(at, Csr::kHostLock, &node->locked_by);
  node->locked_by &= kUnlocked;
  return rc;
}

// Find a node by its identity and tag, which only one device should have.
size_t Looker::find(const Node& node) const {
  for (size_t i = 0; i < map_.nodes.size(); ++i) {
    const Node& other = map_.nodes[i];
    if (node.tag != 0 && other.tag == node.tag && other.identity == node.identity &&
        other.is_switch == node.is_switch) {
      return i;
    }
  }
  return kNoNode;
}

int Looker::look_behind(size_t parent, uint32_t port, Ids ids) {
  const uint32_t hops = parent == 0 ? 0 : map_.nodes[parent].hops + 1;
  if (map_.nodes.size() > options_.nodes || hops > kHopsMax || ids.empty()) {
    return -ETIME;
  }
  Node node;
  PortView view;
  view.state = PortView::kSkipped;
  const int rc = ask({ids.front(), hops}, &node, &view.why);
  if (rc != 0 && !is_of_device(rc)) {
    return rc;
  }
  if (rc != 0) {
    view.why = view.why.empty() ? "it does not answer" : view.why;
    map_.problems.push_back({rc == -EPROTO ? "lying" : "silent", map_.place({parent, port}),
                             view.why, "look at the device's power and link"});
  } else if (const size_t known = find(node); known != kNoNode) {
    view = {PortView::kLoop, known, node.entry_port, ""};
  } else {
    view = {PortView::kNode, map_.nodes.size(), node.entry_port, ""};
    node.parent = parent;
    node.parent_port = port;
    node.hops = hops;
    node.dest_id = node.is_switch ? kNoDestId : ids.front();
    map_.nodes.push_back(node);
    ways_.push_back(std::move(ids));
  }
  if (map_.nodes[parent].is_switch) {
    map_.nodes[parent].ports[port] = view;
  }
  return 0;
}

}  // namespace rio::enumerate
