#include "fpga/wire/shm/shm_wire.hpp"

#include <algorithm>
#include <utility>

#include "base/no_cancel.hpp"
#include "fpga/wire/shm/process_puller.hpp"

namespace rio::wire::shm {
/// Our end of a link.
struct ShmWire::End : Partner {
  explicit End(std::shared_ptr<Link> l)
      : Partner{l->they.first_id, l->they.ids},
        link(std::move(l)),
        puller(link->pid, &link->joint.mine.heads()->pulls, &link->joint.theirs.heads()->leases,
               &link->joint.mine.heads()->leases),
        rings(link->joint) {}

  std::shared_ptr<Link> link;
  ProcessPuller puller;
  bool pulls = false;
  uint64_t other_memory_ns = 0;  // when puller.finds_other_memory() was first seen; 0: not yet
  model::Windows mapped;         // memory of this process that the partner has mapped
  Rings rings;
  bool cut = false;
  uint64_t leased_packets = 0;  // LeaseWords::packets of the partner at the last look

  uint32_t mark = 0;  // tail of the requests' ring when the mark was set
  TakenMark taken;
};

ShmWire::ShmWire() = default;
ShmWire::~ShmWire() {
  for (const auto& end : ends_) {
    end_leases_of(*end);
  }
}

int ShmWire::join(const Seat& seat, std::unique_ptr<ShmWire>* out, std::string* error) {
  std::unique_ptr<Directory> directory;
  if (const int rc = Directory::join(seat, &directory, error); rc != 0) {
    return rc;
  }
  const std::string slow = let_others_see_us();
  std::unique_ptr<ShmWire> wire(new ShmWire);
  wire->pull_ = seat.pull;
  wire->areas_ = seat.areas;
  wire->exchange_ = std::make_unique<Exchange>(std::move(directory), &wire->pumps_, &wire->thread_,
                                               &wire->troubles_, seat.areas);
  if (const int rc = wire->exchange_->start(error); rc != 0) {
    *error = "shm:" + seat.fabric + ": " + *error;
    return rc;
  }
  wire->troubles_.tell(slow);
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
  Event event;
  while (exchange_->take(&event)) {
    on_event(event);
  }
  for (size_t i = 0; i < ends_.size();) {
    End& end = *ends_[i];
    if (end.leaving && is_over(end, end.rings.in_responses.peek() == nullptr &&
                                        end.rings.in_requests.peek() == nullptr &&
                                        !end.rings.in_requests.holds())) {
      close(end);
    } else {
      i += 1;
    }
  }
  if (std::any_of(ends_.begin(), ends_.end(), [](const auto& end) { return end->leaving; })) {
    pumps_.store(true, std::memory_order_relaxed);
  }
}

void ShmWire::on_event(const Event& event) {
  if (event.kind == Event::kCame) {
    connect(event.link);
    return;
  }
  if (event.kind == Event::kNoMember) {
    absent([&](uint32_t dest_id) { return dest_id == event.id; });
    return;
  }
  for (const auto& end : ends_) {
    if (end->link == event.link) {
      leave(*end);  // it sends nothing more, but still takes what it has sent
    }
  }
}

void ShmWire::connect(const std::shared_ptr<Link>& link) {
  // An earlier member with one of these destIDs is dead: drop the rest of its frames, so that none
  // comes after a frame of the new one.
  for (size_t i = 0; i < ends_.size();) {
    End& old = *ends_[i];
    if (ids_meet(old.first_id, old.ids, link->they.first_id, link->they.ids)) {
      close(old);
    } else {
      i += 1;
    }
  }
  ends_.push_back(std::make_unique<End>(link));
  End& end = *ends_.back();
  if (asleep()) {
    link->joint.mine.set_asleep(true);
    make_stores_seen();
  }
  if (pull_) {
    end.pulls = end.puller.works(link->they.nonce_at, link->they.nonce);
    link->joint.mine.heads()->pulls.store(end.pulls ? 1 : 0, std::memory_order_relaxed);
    if (!end.pulls && !end.puller.finds_other_memory()) {
      troubles_.tell(end.puller.why_not());
    }
  }
  link->joint.mine.heads()->leases.number.store(lease_, std::memory_order_relaxed);
  link->joint.mine.heads()->maps.store(link->memory.windows().empty() ? 0 : 1,
                                       std::memory_order_relaxed);
  open(end, {&end.rings.out_requests, &end.rings.out_responses, false, true, 0,
             &link->joint.theirs.heads()->pulls, true, model::kAnnouncedMax, true, true,
             &end.mapped, end.pulls ? &end.puller : nullptr});
}

/// No lease of a link holds any more.
void ShmWire::end_leases_of(const End& end) {
  end.link->joint.mine.heads()->leases.number.store(0, std::memory_order_seq_cst);
}

void ShmWire::end_leases() {
  ++lease_;
  for (const auto& end : ends_) {
    end->link->joint.mine.heads()->leases.number.store(lease_, std::memory_order_relaxed);
  }
  // The end is visible before memory changes; pairs with the fence in Puller::lease_number().
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

/// Count what a partner says it has read since the last look.
void ShmWire::count_leased(End& end) {
  const uint64_t all =
      end.link->joint.theirs.heads()->leases.packets.load(std::memory_order_relaxed);
  leased_packets_ += all - std::exchange(end.leased_packets, all);
}

uint64_t ShmWire::leased_packets() {
  for (const auto& end : ends_) {
    count_leased(*end);
  }
  return std::exchange(leased_packets_, 0);
}

void ShmWire::close(End& end) {
  end_leases_of(end);
  count_leased(end);
  Member::close(end);
  std::erase_if(ends_, [&](const auto& each) { return each.get() == &end; });
  list_inbound();
}

void ShmWire::on_asleep(bool asleep) {
  for (const auto& end : ends_) {
    end->link->joint.mine.set_asleep(asleep);
  }
  if (asleep) {
    // The other half of the fence that FrameWriter::wake() omits: either a partner sees the flag,
    // or we see its frames.
    make_stores_seen();
  }
}

void ShmWire::on_unmapped() {
  for (const auto& end : ends_) {
    if (!end->mapped.empty()) {
      end->link->offer.list(*areas_, &end->mapped);
    }
  }
}

void ShmWire::add_inbound(std::vector<model::Inbound>* list) {
  for (const auto& end : ends_) {
    list->push_back({&end->rings.in_requests, &end->rings.in_responses, end->first_id, end->ids - 1,
                     end->pulls ? &end->puller : nullptr, &end->link->memory.windows()});
  }
}

void ShmWire::check_partners(uint64_t now_ns, uint64_t response_ns) {
  for (const auto& end : ends_) {
    Rings& rings = end->rings;
    if (!end->cut && (rings.in_requests.foul() || rings.in_responses.foul() ||
                      rings.out_requests.foul() || rings.out_responses.foul())) {
      end->cut = true;
      exchange_->cut(end->link);
    }
    if (end->pulls && end->link->joint.mine.heads()->pulls.load(std::memory_order_relaxed) == 0) {
      end->pulls = false;
      troubles_.tell(end->puller.why_not());
    }
    if (end->puller.finds_other_memory() && !end->leaving) {
      // If the partner is about to leave, its link ends meanwhile.
      end->other_memory_ns = end->other_memory_ns == 0 ? now_ns : end->other_memory_ns;
      if (now_ns - end->other_memory_ns >= response_ns) {
        troubles_.tell(end->puller.why_not());
      }
    }
    if (areas_ != nullptr && end->mapped.empty() &&
        end->link->joint.theirs.heads()->maps.load(std::memory_order_relaxed) != 0) {
      end->link->offer.list(*areas_, &end->mapped);
    }
    const uint64_t ns = end->taken.look(
        now_ns, response_ns, [&] { end->mark = rings.out_requests.tail(); },
        [&] { return rings.out_requests.passed(end->mark); });
    if (ns != 0) {
      set_answerable(*end, ns);
    }
  }
}

}  // namespace rio::wire::shm
