// Any bytes as the bodies of lib/msg's control messages. The objects that process accepted bodies
// must not fail an assertion.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "lib/msg/control.hpp"
#include "lib/msg/credit.hpp"
#include "lib/msg/grant.hpp"
#include "lib/msg/offer.hpp"

using namespace rio::msg;

namespace {

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

/// The state for one peer, which gets the bodies.
struct Peer {
  SendGrant send;
  RecvGrant receive;
  OfferMaker maker;
  OfferTaker taker;
  SendAccount account{8};
  uint32_t next = 1;
};

StopCause cause(const StopBody& stop) {
  return {stop.reason, stop.again != 0};
}

/// The work that a live layer does between messages.
void work(Peer* peer) {
  if (peer->send.may_post() != 0) {
    peer->send.posted(1);
  }
  if (peer->send.out() != 0) {
    peer->send.completed(1);
  }
  if (peer->send.closed_due(0)) {
    static_cast<void>(peer->send.take_closed());
  }
  if (peer->receive.state() == RecvGrant::State::kWaiting) {
    peer->receive.start(4, 2);
  }
  if (peer->receive.may_post() != 0) {
    peer->receive.posted(1);
    static_cast<void>(peer->receive.tell());
  }
  require(peer->account.available() <= kWindowMax);
}

void requested(std::span<const uint8_t> bytes, Peer* peer) {
  RequestBody request;
  if (read(bytes, &request) == 0) {
    require(request.edge_bytes <= kEdgeMax && request.len_bytes <= kTransferMax);
    OfferMaker::Answer answer;
    if (peer->maker.state() == OfferMaker::State::kNone) {
      static_cast<void>(peer->maker.open(1));
    }
    static_cast<void>(peer->maker.on_message(request.message_number, request.offer, &answer));
  }
}

void granted(std::span<const uint8_t> bytes, Peer* peer) {
  GrantBody grant;
  if (read(bytes, &grant) == 0) {
    require(grant.mailbox <= 3 && grant.total != 0);
    static_cast<void>(peer->send.on_grant(grant.attempt, grant.mailbox, 16, grant.total));
  }
}

void offered(std::span<const uint8_t> bytes, Peer* peer) {
  OfferBody offer;
  if (read(bytes, &offer) != 0) {
    return;
  }
  rio::pmd::mem::Cut cut;
  require(offered_cut(offer, offer.len_max, &cut) == 0);
  rio::pmd::mem::AlignRules rules;
  require(rio::pmd::mem::check_cut(cut, offer.len_max, rules) == 0);
  if (peer->taker.on_offer(offer, peer->next) == 0) {
    static_cast<void>(peer->taker.take(peer->next++, 8192, 0));
  }
}

void stopped(uint8_t kind, std::span<const uint8_t> bytes, Peer* peer) {
  StopBody stop;
  if (kind == 4 && read(bytes, Kind::kAbort, &stop) == 0) {
    static_cast<void>(peer->send.on_abort(stop.attempt, cause(stop)));
  } else if (kind == 5 && read(bytes, Kind::kClosed, &stop) == 0) {
    static_cast<void>(peer->receive.on_closed(stop.attempt, stop.arrived, cause(stop)));
  }
}

void totalled(uint8_t kind, std::span<const uint8_t> bytes, Peer* peer) {
  TotalBody total;
  if (kind == 2 && read(bytes, Kind::kExtend, &total) == 0) {
    static_cast<void>(peer->send.on_extend(total.attempt, total.total));
  } else if (kind == 3 && read(bytes, Kind::kDone, &total) == 0) {
    static_cast<void>(peer->send.on_done(total.attempt));
  }
}

void revoked(uint8_t kind, std::span<const uint8_t> bytes, Peer* peer) {
  RevokeBody revoke;
  bool answer = false;
  if (read(bytes, &revoke) != 0) {
    return;
  }
  if (kind == 7) {
    static_cast<void>(peer->taker.on_revoke(revoke.offer, &answer));
  } else {
    static_cast<void>(peer->maker.revoke());
    static_cast<void>(peer->maker.on_revoked(revoke.offer));
  }
}

}  // namespace

// Input: messages, each a kind (u8), a length (u8) and the body.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Peer peer;
  while (size >= 2) {
    const uint8_t kind = data[0];
    const size_t len = data[1] < size - 2 ? data[1] : size - 2;
    const std::span<const uint8_t> bytes(data + 2, len);
    switch (kind) {
      case 0:
        requested(bytes, &peer);
        break;
      case 1:
        granted(bytes, &peer);
        break;
      case 2:
      case 3:
        totalled(kind, bytes, &peer);
        break;
      case 4:
      case 5:
        stopped(kind, bytes, &peer);
        break;
      case 6:
        offered(bytes, &peer);
        break;
      case 7:
      case 8:
        revoked(kind, bytes, &peer);
        break;
      case 9:
        // A total of credits, which any header may carry.
        if (len >= 2) {
          static_cast<void>(peer.account.on_limit(static_cast<uint16_t>(bytes[0] | bytes[1] << 8)));
          if (peer.account.available() != 0) {
            peer.account.take_known();
          }
        }
        break;
      default:
        break;
    }
    work(&peer);
    data += 2 + len;
    size -= 2 + len;
  }
  return 0;
}
