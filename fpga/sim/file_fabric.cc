#include "fpga/sim/file_fabric.hpp"

#include <algorithm>
#include <tuple>

#include "base/formatted.hpp"

namespace rio::sim {
namespace {

using wire::switched::DeviceSpec;
using wire::switched::LinkSpec;
using wire::switched::Topology;

constexpr uint32_t kLeftOut = UINT32_MAX;
constexpr uint8_t kNoTurn = UINT8_MAX;  // a device has at most 255 links

}  // namespace

int FileFabric::create(const Topology& file, FileFabric* out, std::string* error) {
  FileFabric fabric;
  fabric.loss_seed_ = file.loss_seed;
  fabric.loss_rate_ = file.loss_rate;
  fabric.take_devices(file);
  if (fabric.nodes_ == 0) {
    return base::fail(error, "no endpoint that is present; add one to \"endpoints\"");
  }
  fabric.take_links(file);
  fabric.turns_.assign(size_t{fabric.devices()} * fabric.nodes_, kNoTurn);
  for (uint32_t node = 0; node < fabric.nodes_; ++node) {
    fabric.route_to(node);
  }
  int rc = fabric.apply_routes(file, error);
  if (rc == 0) {
    rc = fabric.check_routes(error);
  }
  if (rc == 0) {
    *out = std::move(fabric);
  }
  return rc;
}

void FileFabric::take_devices(const Topology& file) {
  device_of_.assign(file.devices.size(), kLeftOut);
  for (const bool is_switch : {false, true}) {
    for (size_t i = 0; i < file.devices.size(); ++i) {
      const DeviceSpec& spec = file.devices[i];
      if (spec.is_switch == is_switch && spec.present && !spec.silent) {
        device_of_[i] = devices();
        names_.push_back(spec.name);
        in_file_.push_back(i);
      }
    }
    nodes_ = is_switch ? nodes_ : devices();
  }
}

void FileFabric::take_links(const Topology& file) {
  for (const LinkSpec& link : file.links) {
    const uint32_t ends[2] = {device_of_[link.ends[0].device], device_of_[link.ends[1].device]};
    if (ends[0] != kLeftOut && ends[1] != kLeftOut) {
      links_.push_back({ends[0], ends[1], link.ends[1].port, link.ends[0].port});
      links_.push_back({ends[1], ends[0], link.ends[0].port, link.ends[1].port});
    }
  }
  const auto place = [](const Link& link) { return std::tuple(link.from, link.port); };
  std::sort(links_.begin(), links_.end(),
            [&](const Link& a, const Link& b) { return place(a) < place(b); });
  first_link_.assign(devices() + 1, 0);
  for (const Link& link : links_) {
    ++first_link_[link.from + 1];
  }
  for (uint32_t device = 0; device < devices(); ++device) {
    first_link_[device + 1] += first_link_[device];
  }
  // Until here `reverse` was the port at the other end.
  for (Link& link : links_) {
    const Link* const other = std::lower_bound(
        links_.data() + first_link_[link.to], links_.data() + first_link_[link.to + 1],
        link.reverse, [](const Link& one, uint32_t port) { return one.port < port; });
    link.reverse = static_cast<uint32_t>(other - links_.data());
  }
}

// Breadth first from the destination: each device gets a link to one that is nearest to the
// destination, and among these the one at its lowest port.
void FileFabric::route_to(uint32_t node) {
  std::vector<uint32_t> distance(devices(), kLeftOut);
  std::vector<uint32_t> found{node};
  distance[node] = 0;
  for (size_t next = 0; next < found.size(); ++next) {
    const uint32_t device = found[next];
    for (uint32_t link = first_link_[device]; link < first_link_[device + 1]; ++link) {
      const uint32_t neighbour = links_[link].to;
      if (distance[neighbour] == kLeftOut) {
        distance[neighbour] = distance[device] + 1;
        found.push_back(neighbour);
      }
    }
  }
  for (const uint32_t device : found) {
    for (uint32_t link = first_link_[device]; link < first_link_[device + 1] && device != node;
         ++link) {
      if (distance[links_[link].to] + 1 == distance[device]) {
        turns_[size_t{device} * nodes_ + node] = static_cast<uint8_t>(link - first_link_[device]);
        break;
      }
    }
  }
}

int FileFabric::apply_routes(const Topology& file, std::string* error) {
  for (uint32_t device = nodes_; device < devices(); ++device) {
    const auto& routes = file.devices[in_file_[device]].routes;
    for (uint32_t node = 0; node < nodes_; ++node) {
      const uint32_t dest_id = file.devices[in_file_[node]].dest_id;
      const auto route = routes.find(dest_id);
      if (dest_id == DeviceSpec{}.dest_id || route == routes.end()) {
        continue;
      }
      const auto begin = links_.begin() + first_link_[device];
      const auto end = links_.begin() + first_link_[device + 1];
      const auto link =
          std::find_if(begin, end, [&](const Link& one) { return one.port == route->second; });
      if (link == end) {
        return base::fail(error,
                          "%s: route \"%u\" leaves by port %u, which has no link; correct it",
                          names_[device].c_str(), dest_id, route->second);
      }
      turns_[size_t{device} * nodes_ + node] = static_cast<uint8_t>(link - begin);
    }
  }
  return 0;
}

int FileFabric::check_routes(std::string* error) {
  for (uint32_t node = 0; node < nodes_; ++node) {
    for (uint32_t source = 0; source < nodes_; ++source) {
      uint32_t hops = 0;
      for (uint32_t at = source; at != node; ++hops) {
        if (turns_[size_t{at} * nodes_ + node] == kNoTurn) {
          return base::fail(error,
                            "%s does not reach %s; link them, or say \"present\": false of one",
                            names_[source].c_str(), names_[node].c_str());
        }
        if (hops == devices()) {
          return base::fail(error, "the way from %s to %s goes in a circle; correct \"routes\"",
                            names_[source].c_str(), names_[node].c_str());
        }
        at = to(next_link(at, node));
      }
      diameter_ = std::max(diameter_, hops);
    }
  }
  return 0;
}

}  // namespace rio::sim
