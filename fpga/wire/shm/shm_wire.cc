#include "fpga/wire/shm/shm_wire.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/no_cancel.hpp"
#include "fpga/wire/seen.hpp"
#include "fpga/wire/shm/process_puller.hpp"

namespace rio::wire::shm {
namespace {

/// How often somebody who is not there is looked for.
constexpr uint64_t kLookAgainNs = 5'000'000;
/// Steps in which what a partner has left behind is taken.
constexpr uint32_t kLastSteps = 1024;

[[nodiscard]] uint64_t monotonic_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

}  // namespace

void set_flags(const Link& link, bool asleep) {
  Heads& heads = *link.mine.heads();
  heads.requests.asleep.store(asleep ? 1 : 0, std::memory_order_relaxed);
  heads.responses.asleep.store(asleep ? 1 : 0, std::memory_order_relaxed);
}

/// Of a partner's thread.
class ShmWire::DoorBell final : public model::Bell {
 public:
  explicit DoorBell(int fd) : fd_(fd) {}
  void ring() override {
    const base::NoCancel no_cancel;
    eventfd_write(fd_, 1);
  }

 private:
  int fd_;
};

/// Our end of a link: writers of our half, readers of the other.
struct ShmWire::End {
  explicit End(std::shared_ptr<Link> l)
      : link(std::move(l)),
        bell(link->their_bell.get()),
        puller(link->pid, &link->mine.heads()->pulls),
        out_requests(&link->theirs.heads()->requests, link->mine.requests(), kRequestRingBytes,
                     &bell),
        out_responses(&link->theirs.heads()->responses, link->mine.responses(), kResponseRingBytes,
                      &bell),
        in_requests(&link->mine.heads()->requests, link->theirs.requests(), kRequestRingBytes),
        in_responses(&link->mine.heads()->responses, link->theirs.responses(), kResponseRingBytes) {
  }

  std::shared_ptr<Link> link;
  DoorBell bell;
  ProcessPuller puller;
  bool pulls = false;
  alignas(64) model::FrameWriter out_requests;
  alignas(64) model::FrameWriter out_responses;
  alignas(64) model::FrameReader in_requests;
  alignas(64) model::FrameReader in_responses;
  uint32_t last_steps = 0;  // left, once the partner is gone
  bool leaving = false;
  bool cut = false;

  // What is known of who has taken what: everything before `mark`, sent up to `mark_ns`, was taken
  // when that was seen at `taken_ns`.
  uint32_t mark = 0;
  uint64_t mark_ns = 0;  // 0: no mark
  uint64_t taken_ns = 0;
};

/// One for each destID that was ever asked for.
struct ShmWire::Way {
  enum State : uint8_t { kUnknown, kLooking, kUp, kLeaving };

  model::Outbound out;
  uint32_t id;
  State state = kUnknown;
  uint32_t times = 0;
  uint64_t looked_ns = 0;
};

ShmWire::ShmWire() = default;
ShmWire::~ShmWire() = default;

int ShmWire::join(const Seat& seat, std::unique_ptr<ShmWire>* out, std::string* error) {
  std::unique_ptr<Directory> directory;
  if (const int rc = Directory::join(seat, &directory, error); rc != 0) {
    return rc;
  }
  const base::Trouble slow = let_others_see_us();
  std::unique_ptr<ShmWire> wire(new ShmWire);
  wire->pull_ = seat.pull;
  wire->exchange_ = std::make_unique<Exchange>(std::move(directory), &wire->pumps_);
  if (const int rc = wire->exchange_->start(error); rc != 0) {
    *error = "shm:" + seat.fabric + ": " + *error;
    return rc;
  }
  if (slow) {
    wire->exchange_->tell(why_slow(slow));
  }
  *out = std::move(wire);
  return 0;
}

ShmWire::Way& ShmWire::way(uint32_t dest_id) {
  std::unique_ptr<Way>& way = ways_[dest_id];
  if (way == nullptr) {
    way = std::make_unique<Way>(Way{{&closed_, &closed_, true}, dest_id});
  }
  return *way;
}

model::Outbound* ShmWire::route(uint32_t dest_id) {
  Way& to = way(dest_id);
  if (to.state == Way::kUp || to.state == Way::kLooking) [[likely]] {
    return &to.out;
  }
  const uint64_t now = monotonic_ns();
  if (to.state == Way::kLeaving || (to.looked_ns != 0 && now - to.looked_ns < kLookAgainNs)) {
    return nullptr;
  }
  if (dest_id - first_id() < ids()) {
    if (self_requests_ == nullptr) {
      self_requests_ = std::make_unique<model::RingBox>(kRequestRingBytes);
      self_responses_ = std::make_unique<model::RingBox>(kResponseRingBytes);
      list_inbound();
    }
    to.state = Way::kUp;
    to.out = {&self_requests_->writer, &self_responses_->writer};
    return &to.out;
  }
  to.looked_ns = now;
  to.state = Way::kLooking;
  to.out.gone = false;
  exchange_->want(dest_id);
  return &to.out;
}

void ShmWire::pump(uint64_t /*now_ns*/) {
  // acquire, by the mutex in take(): before the news is taken, so that none is overlooked.
  pumps_.store(false, std::memory_order_relaxed);
  const base::NoCancel no_cancel;  // descriptors are closed
  News news;
  while (exchange_->take(&news)) {
    on_news(news);
  }
  for (size_t i = 0; i < ends_.size();) {
    if (ends_[i]->leaving && over(*ends_[i])) {
      close(*ends_[i]);
    } else {
      i += 1;
    }
  }
  if (std::any_of(ends_.begin(), ends_.end(), [](const auto& end) { return end->leaving; })) {
    pumps_.store(true, std::memory_order_relaxed);
  }
}

void ShmWire::on_news(const News& news) {
  if (news.kind == News::kCame) {
    connect(news.link);
    return;
  }
  if (news.kind == News::kNobody) {
    Way& nobody = way(news.id);
    if (nobody.state == Way::kLooking) {
      nobody.state = Way::kUnknown;
      nobody.out.gone = true;
      changes_.push_back({&nobody.out, news.id, false, 0});
    }
    return;
  }
  for (const auto& end : ends_) {
    if (end->link == news.link) {
      leave(*end);
    }
  }
}

void ShmWire::connect(const std::shared_ptr<Link>& link) {
  // Whoever had one of these destIDs is dead, and nothing of him is taken behind what comes now.
  for (size_t i = 0; i < ends_.size();) {
    const Link& old = *ends_[i]->link;
    if (old.first_id - link->first_id < link->ids || link->first_id - old.first_id < old.ids) {
      close(*ends_[i]);
    } else {
      i += 1;
    }
  }
  ends_.push_back(std::make_unique<End>(link));
  End& end = *ends_.back();
  if (asleep()) {
    set_flags(*link, true);
    make_stores_seen();
  }
  if (pull_) {
    end.pulls = end.puller.works(link->nonce_at, link->nonce);
    link->mine.heads()->pulls.store(end.pulls ? 1 : 0, std::memory_order_relaxed);
    if (!end.pulls) {
      tell_copies(end);
    }
  }
  for (uint32_t i = 0; i < link->ids; ++i) {
    Way& to = way(link->first_id + i);
    to.state = Way::kUp;
    to.out = {
        &end.out_requests, &end.out_responses, false, true, 0, &link->theirs.heads()->pulls, true};
    ++to.times;
    tell(to, true);
  }
  list_inbound();
}

// The partner is gone: nothing is sent any more; what it has sent is still taken.
void ShmWire::leave(End& end) {
  end.leaving = true;
  end.last_steps = kLastSteps;
  for (uint32_t i = 0; i < end.link->ids; ++i) {
    Way& to = way(end.link->first_id + i);
    to.state = Way::kLeaving;
    to.out = {&closed_, &closed_, true, true, 0};
  }
}

bool ShmWire::over(End& end) {
  return end.last_steps-- == 0 ||
         (end.in_responses.peek() == nullptr && end.in_requests.peek() == nullptr);
}

void ShmWire::close(End& end) {
  for (uint32_t i = 0; i < end.link->ids; ++i) {
    Way& to = way(end.link->first_id + i);
    to.state = Way::kUnknown;
    to.looked_ns = 0;
    to.out = {&closed_, &closed_, true, true, 0};
    tell(to, false);
  }
  std::erase_if(ends_, [&](const auto& each) { return each.get() == &end; });
  list_inbound();
}

void ShmWire::set_asleep(bool asleep) {
  if (asleep_.load(std::memory_order_relaxed) == asleep) {
    return;
  }
  asleep_.store(asleep, std::memory_order_release);
  for (const auto& end : ends_) {
    set_flags(*end->link, asleep);
  }
  if (asleep) {
    // The other half of the fence that FrameWriter::wake() does without: a partner sees the flag,
    // or we see what it has sent.
    make_stores_seen();
  }
}

bool ShmWire::next_trouble(std::string* text) {
  return exchange_->next_trouble(text);
}

void ShmWire::tell_copies(const End& end) {
  if (const std::string why = end.puller.why_not(); !why.empty()) {
    exchange_->tell(why);
  }
}

void ShmWire::tell(Way& way, bool here) {
  changes_.push_back({&way.out, way.id, here, way.times});
}

void ShmWire::list_inbound() {
  inbounds_.clear();
  for (const auto& end : ends_) {
    inbounds_.push_back({&end->in_requests, &end->in_responses, end->link->first_id,
                         end->link->ids - 1, end->pulls ? &end->puller : nullptr});
  }
  if (self_requests_ != nullptr) {
    inbounds_.push_back({&self_requests_->reader, &self_responses_->reader, first_id(), ids() - 1});
  }
  inbound_ = inbounds_;
}

bool ShmWire::next_change(model::PartnerChange* out) {
  if (changes_.empty()) {
    return false;
  }
  *out = changes_.front();
  changes_.pop_front();
  return true;
}

void ShmWire::look_at_partners(uint64_t now_ns, uint64_t response_ns) {
  for (const auto& end : ends_) {
    if (!end->cut && (end->in_requests.foul() || end->in_responses.foul() ||
                      end->out_requests.foul() || end->out_responses.foul())) {
      end->cut = true;
      exchange_->cut(end->link);
    }
    if (end->pulls && end->link->mine.heads()->pulls.load(std::memory_order_relaxed) == 0) {
      end->pulls = false;
      tell_copies(*end);
    }
    if (end->mark_ns == 0) {
      end->mark = end->out_requests.tail();
      end->mark_ns = now_ns - 1;  // behind the mark may be what bears the time of this look
      end->taken_ns = 0;
    } else if (end->taken_ns == 0) {
      end->taken_ns = end->out_requests.passed(end->mark) ? now_ns : 0;
    } else if (now_ns - end->taken_ns > response_ns) {
      for (uint32_t i = 0; i < end->link->ids; ++i) {
        way(end->link->first_id + i).out.answerable_ns = end->mark_ns;
      }
      end->mark_ns = 0;
    }
  }
}

}  // namespace rio::wire::shm
