#include "lib/msg/peers.hpp"

#include "base/clock.hpp"
#include "base/random.hpp"

namespace rio::msg {

Link* Peers::find(uint32_t dest_id) const {
  const auto known = index_of_.find(dest_id);
  return known == index_of_.end() ? nullptr : links_[known->second].get();
}

Link* Peers::find_or_make(uint32_t dest_id, uint32_t most) {
  if (Link* const known = find(dest_id); known != nullptr) {
    return known;
  }
  if (count_ >= most) {
    return nullptr;
  }
  links_.push_back(std::make_unique<Link>(dest_id, count_));
  index_of_.emplace(dest_id, count_);
  ++count_;
  renew(*links_.back());
  return links_.back().get();
}

void Peers::renew(Link& link) {
  // Keys and first numbers are not secret. They only have to differ from earlier ones, of this
  // process and of the process that had the destID before.
  const uint64_t mixed = base::mix64(key_seed_ += base::kRandomStep);
  const auto nonce = static_cast<uint32_t>(mixed >> 48);
  const uint32_t before = link.keys.local >> 16;
  link.keys.local =
      (nonce == before || nonce == 0 ? (before + 1) | 1u : nonce) << 16 | link.index();
  link.keys.first_in = first_number_ != 0 ? first_number_ : static_cast<uint32_t>(mixed);
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
