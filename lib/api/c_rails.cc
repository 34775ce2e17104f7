// riomsg.h: the rails of a port.
#include "lib/api/handles.hpp"

using rio::msg::Guard;
using rio::msg::RailReason;

static_assert(RIO_MSG_RAIL_NO_ANSWER == static_cast<int>(RailReason::kNoAnswer));
static_assert(RIO_MSG_RAIL_LINK_DOWN == static_cast<int>(RailReason::kLinkDown));
static_assert(RIO_MSG_RAIL_CARD_GONE == static_cast<int>(RailReason::kCardGone));
static_assert(RIO_MSG_RAIL_PEER_GONE == static_cast<int>(RailReason::kPeerGone));

const char* rio_msg_rail_name(const rio_msg_port* port, uint32_t rail) {
  const rio::msg::Rails& rails = port->port->rails();
  return rail < rails.count() ? rails.at(rail).endpoint.name().c_str() : nullptr;
}

int rio_msg_get_rail_stats(rio_msg_port* port, uint32_t rail, rio_msg_rail_stats* out,
                           size_t size_bytes) {
  if (rail >= port->port->rails().count()) {
    return -ENOENT;
  }
  const Guard guard(*port->port);
  const rio::msg::RailStats stats = port->port->rail_stats(rail);
  const rio_msg_rail_stats all = {.sent = stats.sent,
                                  .sent_bytes = stats.sent_bytes,
                                  .received = stats.received,
                                  .received_bytes = stats.received_bytes,
                                  .remote = stats.remote,
                                  .remote_bytes = stats.remote_bytes,
                                  .failed = stats.failed,
                                  .again = stats.again,
                                  .moves = stats.moves,
                                  .downs = stats.downs,
                                  .paths = stats.paths,
                                  .paths_up = stats.paths_up,
                                  .gone = stats.gone};
  return rio::api::write_counts("rio_msg_get_rail_stats", all, out, size_bytes);
}

int rio_msg_next_rail_event(rio_msg_port* port, rio_msg_rail_event* out) {
  return rio::api::guarded(*port->port, [&] {
    rio::msg::RailEvent event;
    if (!port->rail_events.next(port->port->rail_news(), &event)) {
      return 0;
    }
    *out = {event.rail, event.dest_id, event.is_up ? 1u : 0u, static_cast<uint32_t>(event.reason),
            event.time_ns};
    return 1;
  });
}
