#include "fpga/wire/relay/relay_wire.hpp"

#include <algorithm>
#include <cstring>

#include "fpga/wire/frame_check.hpp"

namespace rio::wire::relay {
namespace {

using model::Frame;
using model::InFrame;
using model::RingBox;

/// Packets that one step takes from a lane.
constexpr uint32_t kPacketsPerStep = 64;
/// Ring between the card and its packets.
constexpr uint32_t kOutBytes = 16 * 1024;
// The longest frame fits into an empty ring wherever it begins, even behind a filler up to the
// ring's end.
static_assert(kOutBytes > 2 * kTransferMax);
constexpr uint32_t kInBytes[kLanes] = {64 * 1024, 32 * 1024};

}  // namespace

/// Another process that this one talks to.
struct RelayWire::Peer : Partner {
  /// The card's frames are turned into packets at once, so the reader of its ring always wants to
  /// be woken.
  struct Out final : model::Bell {
    Out(RelayWire& w, Peer& p, uint32_t l) : wire(w), peer(p), lane(l), box(kOutBytes, this) {
      box.shared.asleep = 1;
    }
    void ring() override { wire.flush(peer, lane); }

    RelayWire& wire;
    Peer& peer;
    uint32_t lane;
    RingBox box;
    uint32_t sequence = 0;
    uint32_t sent = 0;   // bytes of frames; wraps
    uint32_t taken = 0;  // bytes that the partner has taken
  };

  Peer(RelayWire& wire, const Control& news)
      : Partner{news.first_id, news.ids},
        process(news.process),
        out{{wire, *this, 0}, {wire, *this, kResponses}} {}

  uint32_t process;
  Out out[kLanes];
  Assembler in[kLanes];

  uint32_t mark = 0;  // tail of the requests' ring when the mark was set
  bool mark_is_sent = false;
  uint32_t mark_sent = 0;  // bytes sent up to the mark
  TakenMark taken;
};

RelayWire::RelayWire() = default;
RelayWire::~RelayWire() = default;

int RelayWire::join(const Ticket& ticket, std::unique_ptr<RelayWire>* out, std::string* error) {
  const std::string slow = let_others_see_us();
  std::unique_ptr<RelayWire> wire(new RelayWire);
  if (const int rc =
          ControlChannel::join(ticket, &wire->news_, &wire->thread_, &wire->channel_, error);
      rc != 0) {
    return rc;
  }
  wire->rings_ = std::make_unique<Rings>(wire->channel_->joint());
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    wire->in_[lane] = std::make_unique<RingBox>(kInBytes[lane]);
  }
  wire->list_inbound();
  wire->pumps_ = true;  // every packet arrives through pump()
  wire->troubles_.tell(slow);
  *out = std::move(wire);
  return 0;
}

void RelayWire::add_inbound(std::vector<model::Inbound>* list) {
  list->push_back({&in_[0]->reader, &in_[kResponses]->reader});
}

RelayWire::Peer* RelayWire::peer_of(uint32_t process) {
  const auto it = peers_.find(process);
  return it == peers_.end() ? nullptr : it->second.get();
}

bool RelayWire::find_member(uint32_t dest_id) {
  if (lost_) {
    return false;
  }
  channel_->want(dest_id);
  return true;
}

void RelayWire::pump(uint64_t /*now_ns*/) {
  past_.clear();
  if (news_.load(std::memory_order_relaxed)) {
    // acquire, by the mutex in take(): cleared before the news is taken, so that none is missed.
    news_.store(false, std::memory_order_relaxed);
    Control news;
    while (channel_->take(&news)) {
      on_news(news);
    }
  }
  if (lost_) {
    return;
  }
  const bool responses = take(kResponses);
  if (take(0) || responses) {
    rings_->ring_if_asleep();
  }
  for (const auto& [process, peer] : peers_) {
    flush(*peer, kResponses);
    flush(*peer, 0);
  }
  const bool quiet = rings_->in_requests.peek() == nullptr &&
                     rings_->in_responses.peek() == nullptr &&
                     std::all_of(std::begin(in_), std::end(in_),
                                 [](const auto& ring) { return ring->reader.peek() == nullptr; });
  for (auto it = peers_.begin(); it != peers_.end();) {
    Peer& peer = *(it++)->second;
    if (peer.leaving && is_over(peer, quiet)) {
      gone(peer);
    }
  }
}

void RelayWire::on_news(const Control& news) {
  switch (news.say) {
    case Say::kCame:
      came(news);
      break;
    case Say::kNoProcess:
      absent([&](uint32_t dest_id) { return dest_id == news.first_id; });
      break;
    case Say::kGone:
      if (Peer* const peer = peer_of(news.process); peer != nullptr && !peer->leaving) {
        leave(*peer);
      }
      break;
    default:
      lose(news.text[0] != '\0' ? std::string(news.text, strnlen(news.text, sizeof news.text))
                                : "the relay has gone");
  }
}

void RelayWire::came(const Control& news) {
  if (news.first_id == 0 || news.ids == 0 || news.ids > kIdsMax ||
      news.ids - 1 > kLastId - news.first_id || peers_.contains(news.process)) {
    return;  // known already
  }
  // An earlier process with one of these destIDs is dead: drop its frames, so that none comes after
  // a frame of the new one.
  for (auto it = peers_.begin(); it != peers_.end();) {
    Peer& old = *(it++)->second;
    if (ids_meet(old.first_id, old.ids, news.first_id, news.ids)) {
      gone(old);
    }
  }
  Peer& peer = *(peers_[news.process] = std::make_unique<Peer>(*this, news));
  open(peer, {&peer.out[0].box.writer, &peer.out[kResponses].box.writer, false, true, 0});
}

void RelayWire::gone(Peer& peer) {
  close(peer);
  const auto it = peers_.find(peer.process);
  former_.insert(peer.process);
  past_.push_back(std::move(it->second));
  peers_.erase(it);
}

void RelayWire::lose(const std::string& why) {
  if (lost_) {
    return;
  }
  lost_.store(true, std::memory_order_release);
  while (!peers_.empty()) {
    gone(*peers_.begin()->second);
  }
  absent([](uint32_t /*dest_id*/) { return true; });
  troubles_.tell("the link is down: " + why);
}

void RelayWire::flush(Peer& peer, uint32_t lane) {
  Peer::Out& out = peer.out[lane];
  model::FrameWriter& up = lane == kResponses ? rings_->out_responses : rings_->out_requests;
  const InFrame* frame = out.box.reader.peek();
  if (frame == nullptr) {
    return;
  }
  for (; frame != nullptr; frame = out.box.reader.peek()) {
    const uint32_t bytes = frame->bytes;
    if (bytes > kWindowBytes - (out.sent - out.taken)) {
      break;
    }
    scratch_.resize(bytes);
    std::memcpy(scratch_.data(), static_cast<const Frame*>(frame), sizeof(Frame));
    std::memcpy(scratch_.data() + sizeof(Frame), frame->payload(), bytes - sizeof(Frame));
    const Announce head{.sequence = out.sequence,
                        .source_process = channel_->seat().process,
                        .dest_process = peer.process,
                        .source_port = frame->source,
                        .dest_port = frame->dest};
    if (!put_transfer(up, head, scratch_)) {
      break;
    }
    ++out.sequence;
    out.sent += bytes;
    out.box.reader.pop(frame);
  }
  out.box.reader.release();
}

bool RelayWire::take(uint32_t lane) {
  model::FrameReader& ring = lane == kResponses ? rings_->in_responses : rings_->in_requests;
  const InFrame* packet = ring.peek();
  uint32_t taken = 0;
  const char* why = nullptr;
  while (packet != nullptr && taken < kPacketsPerStep && take_packet(lane, *packet, &why)) {
    ring.pop(packet);
    packet = ring.peek();
    ++taken;
  }
  if (why != nullptr || ring.foul()) {
    lose(std::string("the relay ") + (why != nullptr ? why : "writes impossible packets"));
  }
  if (taken == 0) {
    return false;
  }
  ring.release();
  return true;
}

// Returns false if the packet has to stay. `why` is set if it breaks the rules.
bool RelayWire::take_packet(uint32_t lane, const InFrame& in, const char** why) {
  if (id_of(in) == kCreditBit) {
    const auto credit = packet_as<Credit>(in);
    if (Peer* const peer = peer_of(credit.process); peer != nullptr) {
      Peer::Out& out = peer->out[credit.lane == kResponses ? kResponses : 0];
      *why = credit.taken <= out.sent - out.taken ? nullptr : "credits more than was sent";
      out.taken += credit.taken;
    }
    return *why == nullptr;
  }
  const bool control = id_of(in) == kControlBit;
  const auto head = packet_as<Announce>(in);  // Data begins alike
  Peer* const peer = peer_of(head.source_process);
  if (peer == nullptr) {
    return former_.contains(head.source_process);  // otherwise its kCame is on the way
  }
  if (!control) {
    return take_data(lane, in, *peer, why);
  }
  *why = head.source_port - peer->first_id < peer->ids && head.dest_port - first_id() < ids() &&
                 head.dest_process == channel_->seat().process
             ? peer->in[lane].announce(head)
             : "brings a frame for another process";
  return *why == nullptr;
}

bool RelayWire::take_data(uint32_t lane, const InFrame& in, Peer& peer, const char** why) {
  Assembler& assembler = peer.in[lane];
  if (assembler.open() && !in_[lane]->writer.fits(assembler.head().length)) {
    return false;
  }
  bool whole = false;
  *why = assembler.data(packet_as<Data>(in), {in.payload(), in.bytes - sizeof(Data)}, &whole);
  if (*why == nullptr && whole) {
    const auto frame = assembler.frame();
    const Frame head = head_of(frame.data());
    if (head.bytes != frame.size() || head.source != assembler.head().source_port ||
        head.dest != assembler.head().dest_port || !may_travel(head, lane == kResponses)) {
      *why = "brings a frame that no card sends";
      return false;
    }
    static_cast<void>(put_frame(in_[lane]->writer, head, frame.data() + sizeof head));  // it fits
    in_[lane]->writer.publish();
  }
  return *why == nullptr;
}

void RelayWire::on_asleep(bool asleep) {
  channel_->joint().mine.set_asleep(asleep);
  if (asleep) {
    // The other half of the fence that FrameWriter::wake() omits: either the host sees the flag, or
    // we see its packets.
    make_stores_seen();
  }
}

void RelayWire::check_partners(uint64_t now_ns, uint64_t response_ns) {
  for (const auto& [process, peer] : peers_) {
    Peer::Out& out = peer->out[0];
    const auto begin = [&, &peer = *peer] {
      peer.mark = out.box.writer.tail();
      peer.mark_is_sent = false;
    };
    const auto taken = [&, &peer = *peer] {
      if (!peer.mark_is_sent) {
        peer.mark_is_sent = out.box.writer.passed(peer.mark);
        peer.mark_sent = out.sent;
        return false;
      }
      return static_cast<int32_t>(out.taken - peer.mark_sent) >= 0;
    };
    if (const uint64_t ns = peer->taken.look(now_ns, response_ns, begin, taken); ns != 0) {
      set_answerable(*peer, ns);
    }
  }
}

}  // namespace rio::wire::relay
