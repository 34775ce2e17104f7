#include "fpga/wire/relay/relay_wire.hpp"

#include <algorithm>
#include <cstring>

#include "fpga/wire/frame_check.hpp"
#include "fpga/wire/seen.hpp"

namespace rio::wire::relay {
namespace {

using model::Frame;
using model::InFrame;
using model::RingBox;

/// Packets that one step takes from a lane.
constexpr uint32_t kPacketsPerStep = 64;
/// Ring between the card and its packets.
constexpr uint32_t kOutBytes[kLanes] = {16 * 1024, 16 * 1024};
// The longest frame fits into an empty ring wherever it begins, even behind a filler up to the
// ring's end.
static_assert(kOutBytes[0] > 2 * kTransferMax && kOutBytes[kResponses] > 2 * kTransferMax);
constexpr uint32_t kInBytes[kLanes] = {64 * 1024, 32 * 1024};

}  // namespace

/// The bell of the host's thread.
class RelayWire::HostBell final : public EventBell {
 public:
  HostBell(int fd, const Heads* host) : EventBell(fd), host_(host) {}
  /// Ring because packets were taken: the host has to know it if it sleeps.
  void ring_if_asleep() {
    if (host_->requests.asleep.load(std::memory_order_relaxed) != 0) {
      ring();
    }
  }

 private:
  const Heads* host_;
};

/// Another process that this one talks to.
struct RelayWire::Peer {
  /// The card's frames are turned into packets at once, so the reader of its ring always wants to
  /// be woken.
  struct Out final : model::Bell {
    Out(RelayWire& w, Peer& p, uint32_t l)
        : wire(w),
          peer(p),
          lane(l),
          memory(kOutBytes[l] / sizeof(RingBox::Line)),
          writer(&shared, memory.data()->bytes, kOutBytes[l], this),
          reader(&shared, memory.data()->bytes, kOutBytes[l]) {
      shared.asleep = 1;
    }
    void ring() override { wire.flush(peer, lane); }

    RelayWire& wire;
    Peer& peer;
    uint32_t lane;
    model::FrameRingShared shared;
    std::vector<RingBox::Line> memory;
    model::FrameWriter writer;
    model::FrameReader reader;
    uint32_t sequence = 0;
    uint32_t sent = 0;   // bytes of frames; wraps
    uint32_t taken = 0;  // bytes that the partner has taken
  };

  Peer(RelayWire& wire, const Control& news)
      : process(news.process),
        first_id(news.first_id),
        ids(news.ids),
        requests(wire, *this, 0),
        responses(wire, *this, kResponses) {}
  [[nodiscard]] Out& out(uint32_t lane) { return lane == kResponses ? responses : requests; }

  uint32_t process;
  uint32_t first_id;
  uint32_t ids;
  Out requests;
  Out responses;
  Assembler in[kLanes];
  bool leaving = false;
  uint32_t last_steps = kLastSteps;

  uint32_t mark = 0;  // tail of the requests' ring when the mark was set
  bool mark_is_sent = false;
  uint32_t mark_sent = 0;  // bytes sent up to the mark
  TakenMark taken;
};

RelayWire::RelayWire() = default;
RelayWire::~RelayWire() = default;

int RelayWire::join(const Ticket& ticket, std::unique_ptr<RelayWire>* out, std::string* error) {
  const base::Trouble slow = let_others_see_us();
  std::unique_ptr<RelayWire> wire(new RelayWire);
  std::unique_ptr<ControlChannel> channel;
  if (const int rc = ControlChannel::join(ticket, &wire->news_, &channel, error); rc != 0) {
    return rc;
  }
  wire->plug(std::move(channel));
  if (slow) {
    wire->slow_ = why_slow(slow);
    wire->channel_->poke_soon();
  }
  *out = std::move(wire);
  return 0;
}

void RelayWire::plug(std::unique_ptr<ControlChannel> channel) {
  channel_ = std::move(channel);
  const Half& mine = channel_->mine();
  const Half& theirs = channel_->theirs();
  host_bell_ = std::make_unique<HostBell>(channel_->host_bell().get(), theirs.heads());
  up_[0] = std::make_unique<model::FrameWriter>(&theirs.heads()->requests, mine.requests(),
                                                kRequestRingBytes, host_bell_.get());
  up_[1] = std::make_unique<model::FrameWriter>(&theirs.heads()->responses, mine.responses(),
                                                kResponseRingBytes, host_bell_.get());
  down_[0] = std::make_unique<model::FrameReader>(&mine.heads()->requests, theirs.requests(),
                                                  kRequestRingBytes);
  down_[1] = std::make_unique<model::FrameReader>(&mine.heads()->responses, theirs.responses(),
                                                  kResponseRingBytes);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    in_[lane] = std::make_unique<RingBox>(kInBytes[lane]);
  }
  list_inbound();
  pumps_ = true;  // every packet arrives through pump()
}

void RelayWire::add_inbound(std::vector<model::Inbound>* list) {
  list->push_back({&in_[0]->reader, &in_[kResponses]->reader});
}

RelayWire::Peer* RelayWire::peer_of(uint32_t process) {
  const auto it = peers_.find(process);
  return it == peers_.end() ? nullptr : it->second.get();
}

bool RelayWire::find_member(uint32_t dest_id) {
  if (link_is_lost()) {
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
  if (link_is_lost()) {
    return;
  }
  const bool responses = take(kResponses);
  if (take(0) || responses) {
    host_bell_->ring_if_asleep();
  }
  for (const auto& [process, peer] : peers_) {
    flush(*peer, kResponses);
    flush(*peer, 0);
  }
  const bool quiet = std::all_of(std::begin(down_), std::end(down_),
                                 [](const auto& ring) { return ring->peek() == nullptr; }) &&
                     std::all_of(std::begin(in_), std::end(in_),
                                 [](const auto& ring) { return ring->reader.peek() == nullptr; });
  std::erase_if(leaving_, [&](uint32_t process) {
    Peer* const peer = peer_of(process);
    if (peer == nullptr || (!quiet && peer->last_steps-- != 0)) {
      return peer == nullptr;
    }
    gone(*peer);
    return true;
  });
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
        peer->leaving = true;
        leaving_.push_back(news.process);
        leave(peer->first_id, peer->ids);
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
    if (old.first_id - news.first_id < news.ids || news.first_id - old.first_id < old.ids) {
      gone(old);
    }
  }
  Peer& peer = *(peers_[news.process] = std::make_unique<Peer>(*this, news));
  open(peer.first_id, peer.ids, {&peer.requests.writer, &peer.responses.writer, false, true, 0});
}

void RelayWire::gone(Peer& peer) {
  close(peer.first_id, peer.ids);
  const auto it = peers_.find(peer.process);
  former_.insert(peer.process);
  past_.push_back(std::move(it->second));
  peers_.erase(it);
}

void RelayWire::lose(const std::string& why) {
  if (link_is_lost()) {
    return;
  }
  why_lost_ = why;
  lost_.store(true, std::memory_order_release);
  while (!peers_.empty()) {
    gone(*peers_.begin()->second);
  }
  absent([](uint32_t /*dest_id*/) { return true; });
  channel_->poke_soon();  // so that next_trouble() is called
}

void RelayWire::flush(Peer& peer, uint32_t lane) {
  Peer::Out& out = peer.out(lane);
  const InFrame* frame = out.reader.peek();
  if (frame == nullptr) {
    return;
  }
  for (; frame != nullptr; frame = out.reader.peek()) {
    const uint32_t bytes = frame->bytes;
    if (bytes > kWindowBytes - (out.sent - out.taken)) {
      break;
    }
    scratch_.resize(bytes);
    std::memcpy(scratch_.data(), static_cast<const Frame*>(frame), sizeof(Frame));
    std::memcpy(scratch_.data() + sizeof(Frame), frame->payload(), bytes - sizeof(Frame));
    const Announce head{.bytes = 0,
                        .id = kControlBit,
                        .zero = {},
                        .sequence = out.sequence,
                        .source_process = channel_->seat().process,
                        .dest_process = peer.process,
                        .source_port = frame->source,
                        .dest_port = frame->dest,
                        .length = bytes};
    if (!put_transfer(*up_[lane], head, scratch_)) {
      break;
    }
    ++out.sequence;
    out.sent += bytes;
    out.reader.pop(frame);
  }
  out.reader.release();
}

bool RelayWire::take(uint32_t lane) {
  model::FrameReader& ring = *down_[lane];
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
      Peer::Out& out = peer->out(credit.lane);
      *why = credit.taken <= out.sent - out.taken ? nullptr : "credits more than was sent";
      out.taken += credit.taken;
    }
    return *why == nullptr;
  }
  const bool control = id_of(in) == kControlBit;
  const uint32_t source =
      control ? packet_as<Announce>(in).source_process : packet_as<Data>(in).source_process;
  Peer* const peer = peer_of(source);
  if (peer == nullptr) {
    return former_.contains(source);  // otherwise the news that it has joined is on its way
  }
  if (!control) {
    return take_data(lane, in, *peer, why);
  }
  const auto head = packet_as<Announce>(in);
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
    Frame head;
    std::memcpy(static_cast<void*>(&head), assembler.frame().data(), sizeof head);
    *why = head.bytes == assembler.frame().size() && head.source == assembler.head().source_port &&
                   head.dest == assembler.head().dest_port && may_travel(head, lane == kResponses)
               ? nullptr
               : "brings a frame that no card sends";
  }
  if (*why == nullptr && whole) {
    deliver(lane, assembler.frame());
  }
  return *why == nullptr;
}

void RelayWire::deliver(uint32_t lane, std::span<const uint8_t> frame) {
  const auto bytes = static_cast<uint32_t>(frame.size());
  model::FrameWriter& to = in_[lane]->writer;
  Frame* const at = to.reserve(bytes);
  if (at == nullptr) {
    return;  // take_data() has checked that there is room
  }
  constexpr size_t kSkip = sizeof(Frame::bytes);  // that field belongs to the ring
  std::memcpy(reinterpret_cast<uint8_t*>(at) + kSkip, frame.data() + kSkip, bytes - kSkip);
  to.commit(at, bytes);
  to.publish();
}

bool RelayWire::next_trouble(std::string* text) {
  if (!slow_.empty() && !told_slow_.exchange(true)) {
    *text = slow_;
    return true;
  }
  if (!link_is_lost() || told_lost_.exchange(true)) {
    return false;
  }
  *text = "the link is down: " + why_lost();
  return true;
}

void RelayWire::set_asleep(bool asleep) {
  if (asleep_.load(std::memory_order_relaxed) == asleep) {
    return;
  }
  asleep_.store(asleep, std::memory_order_release);
  channel_->mine().set_asleep(asleep);
  if (asleep) {
    // The other half of the fence that FrameWriter::wake() omits: either the host sees the flag, or
    // we see its packets.
    make_stores_seen();
  }
}

void RelayWire::check_partners(uint64_t now_ns, uint64_t response_ns) {
  for (const auto& [process, peer] : peers_) {
    Peer::Out& out = peer->requests;
    const auto begin = [&, &peer = *peer] {
      peer.mark = out.writer.tail();
      peer.mark_is_sent = false;
    };
    const auto taken = [&, &peer = *peer] {
      if (!peer.mark_is_sent) {
        peer.mark_is_sent = out.writer.passed(peer.mark);
        peer.mark_sent = out.sent;
        return false;
      }
      return static_cast<int32_t>(out.taken - peer.mark_sent) >= 0;
    };
    if (const uint64_t ns = peer->taken.look(now_ns, response_ns, begin, taken); ns != 0) {
      set_answerable(peer->first_id, peer->ids, ns);
    }
  }
}

}  // namespace rio::wire::relay
