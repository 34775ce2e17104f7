#include "lib/ofi/card_ways.hpp"

#include "lib/job/settings.hpp"
#include "lib/ofi/ask.hpp"

namespace rio::ofi {

/// An emulated card that copies packet by packet copies long data more often than messages do, and
/// long messages go by all rails to the peer at once.
uint64_t CardWays::bytes_max(const CardTarget& target) const {
  constexpr uint64_t kBytesMax = 256 << 10;
  const bool is_best = border_ != job::kRmaBorderOfPath ||
                       (target.path == nullptr && target.way->moves_directly(target.dest_id));
  return is_best ? border_ : kBytesMax;
}

/// Of the rails whose path to the peer is up, the one with the fewest bytes under way; of equal
/// ones the rail of the peer's messages.
CardTarget CardWays::choose_rail(tag::Address to, uint64_t bytes) {
  msg::Link* const link = port_->known_link(tag::dest_id_of(to));
  if (link == nullptr) {
    return {};  // a request by message makes the link
  }
  if (link->peer_rails == nullptr) {
    return {ways_[0].may(to, bytes) ? &ways_[0] : nullptr, nullptr, tag::dest_id_of(to)};
  }
  CardTarget best;
  for (const std::unique_ptr<msg::Path>& path : link->paths) {
    if (path == nullptr || !path->is_found || !path->state.is_up() ||
        path->rail.health.error() != 0) {
      continue;
    }
    CardWay& way = ways_[path->rail.index];
    const bool is_better =
        best.way == nullptr || way.bytes_under_way() < best.way->bytes_under_way() ||
        (way.bytes_under_way() == best.way->bytes_under_way() && path.get() == link->path);
    if (is_better && way.may(to, bytes)) {
      best = {&way, path.get(), path->dest_id, path->remote,
              rails_of(path->remote, path->rail.index)};
    }
  }
  return best;
}

}  // namespace rio::ofi
