#include "lib/msg/peers.hpp"

#include "base/clock.hpp"
#include "base/random.hpp"
#include "lib/msg/rail.hpp"

namespace rio::msg {

Path* Peers::find(uint32_t rail, uint32_t dest_id) const {
  const auto known = paths_.find(key_of(rail, dest_id));
  return known == paths_.end() ? nullptr : known->second;
}

Link* Peers::find_or_make(uint32_t dest_id, uint32_t most) {
  if (Link* const known = find(dest_id); known != nullptr) {
    return known;
  }
  if (count_ >= most) {
    return nullptr;
  }
  links_.push_back(std::make_unique<Link>(dest_id, count_));
  Link& link = *links_.back();
  ++count_;
  Rail& rail = rails_.first();
  static_cast<void>(add_path(link, rail, dest_id));
  rail.outbox.use(*link.paths[rail.index]);
  renew(link);
  return &link;
}

Path& Peers::add_path(Link& link, Rail& rail, uint32_t dest_id) {
  auto path = std::make_unique<Path>(rail, link, dest_id, config_.response_timeout_ns());
  Path& added = *path;
  path.swap(link.paths[rail.index]);
  paths_[key_of(rail.index, dest_id)] = &added;
  if (path != nullptr && link.path == path.get()) {
    rail.outbox.use(added);
  }
  if (path != nullptr) {
    former_.push_back(std::move(path));
  }
  return added;
}

void Peers::renew(Link& link) {
  // Keys and first numbers are not secret. They only have to differ from earlier ones, of this
  // process and of the process that had the destID before.
  const uint64_t mixed = base::mix64(key_seed_ += base::kRandomStep);
  const auto nonce = static_cast<uint32_t>(mixed >> 48);
  const uint32_t before = link.keys.local >> 16;
  link.keys.local =
      (nonce == before || nonce == 0 ? (before + 1) | 1u : nonce) << 16 | link.index();
  link.keys.first_in =
      config_.first_number != 0 ? config_.first_number : static_cast<uint32_t>(mixed);
  link.expect(link.keys.first_in);
}

void Peers::watch(Link& link, uint64_t again_ns) {
  if (!link.clock.watched) {
    link.clock.watched = true;
    link.clock.again_ns = again_ns != 0 ? again_ns : base::now_ns() + kAliveNs;
    watched_.push_back(link.index());
  } else if (again_ns != 0) {
    link.clock.again_ns = again_ns;
  }
}

}  // namespace rio::msg
