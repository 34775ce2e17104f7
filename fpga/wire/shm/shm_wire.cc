#include "fpga/wire/shm/shm_wire.hpp"

#include <algorithm>
#include <cerrno>

#include "base/no_cancel.hpp"
#include "fpga/wire/seen.hpp"
#include "fpga/wire/shm/process_puller.hpp"

namespace rio::wire::shm {
/// Our end of a link: writers of our half, readers of the partner's.
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
  EventBell bell;
  ProcessPuller puller;
  bool pulls = false;
  alignas(64) model::FrameWriter out_requests;
  alignas(64) model::FrameWriter out_responses;
  alignas(64) model::FrameReader in_requests;
  alignas(64) model::FrameReader in_responses;
  uint32_t last_steps = 0;  // steps left once the partner is gone
  bool leaving = false;
  bool cut = false;

  uint32_t mark = 0;  // tail of out_requests when the mark was set
  TakenMark taken;
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

bool ShmWire::find_member(uint32_t dest_id) {
  exchange_->want(dest_id);
  return true;
}

void ShmWire::pump(uint64_t /*now_ns*/) {
  // acquire, by the mutex in take(): cleared before the news is taken, so that none is missed.
  pumps_.store(false, std::memory_order_relaxed);
  const base::NoCancel no_cancel;  // descriptors are closed here
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
  if (news.kind == News::kNoMember) {
    absent([&](uint32_t dest_id) { return dest_id == news.id; });
    return;
  }
  for (const auto& end : ends_) {
    if (end->link == news.link) {
      leave(*end);
    }
  }
}

void ShmWire::connect(const std::shared_ptr<Link>& link) {
  // An earlier member with one of these destIDs is dead: drop the rest of its frames, so that none
  // comes after a frame of the new one.
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
    link->mine.set_asleep(true);
    make_stores_seen();
  }
  if (pull_) {
    end.pulls = end.puller.works(link->nonce_at, link->nonce);
    link->mine.heads()->pulls.store(end.pulls ? 1 : 0, std::memory_order_relaxed);
    if (!end.pulls) {
      tell_copies(end);
    }
  }
  open(link->first_id, link->ids,
       {&end.out_requests, &end.out_responses, false, true, 0, &link->theirs.heads()->pulls, true});
  list_inbound();
}

// The partner is gone: sends nothing more, but still takes what it has sent.
void ShmWire::leave(End& end) {
  end.leaving = true;
  end.last_steps = kLastSteps;
  RoutedMember::leave(end.link->first_id, end.link->ids);
}

bool ShmWire::over(End& end) {
  return end.last_steps-- == 0 ||
         (end.in_responses.peek() == nullptr && end.in_requests.peek() == nullptr);
}

void ShmWire::close(End& end) {
  RoutedMember::close(end.link->first_id, end.link->ids);
  std::erase_if(ends_, [&](const auto& each) { return each.get() == &end; });
  list_inbound();
}

void ShmWire::set_asleep(bool asleep) {
  if (asleep_.load(std::memory_order_relaxed) == asleep) {
    return;
  }
  asleep_.store(asleep, std::memory_order_release);
  for (const auto& end : ends_) {
    end->link->mine.set_asleep(asleep);
  }
  if (asleep) {
    // The other half of the fence that FrameWriter::wake() omits: either a partner sees the flag,
    // or we see its frames.
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

void ShmWire::add_inbound(std::vector<model::Inbound>* list) {
  for (const auto& end : ends_) {
    list->push_back({&end->in_requests, &end->in_responses, end->link->first_id, end->link->ids - 1,
                     end->pulls ? &end->puller : nullptr});
  }
}

void ShmWire::check_partners(uint64_t now_ns, uint64_t response_ns) {
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
    const uint64_t ns = end->taken.look(
        now_ns, response_ns, [&] { end->mark = end->out_requests.tail(); },
        [&] { return end->out_requests.passed(end->mark); });
    if (ns != 0) {
      set_answerable(end->link->first_id, end->link->ids, ns);
    }
  }
}

}  // namespace rio::wire::shm
