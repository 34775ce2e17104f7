#include "lib/msg/inflows.hpp"

#include <algorithm>

namespace rio::msg {
namespace {

constexpr uint32_t kShareMin = 4;
constexpr uint32_t kSharesFree = 16;

}  // namespace

void Inflows::open(Link& link, uint32_t context) {
  Inflow& flow = link.in[context];
  if (contexts_[context] == nullptr) {
    link.say.refused |= 1ull << context;
    peers_.want(link);
    return;
  }
  if (!flow.open) {
    // The fewer buffers are left, the less a new peer gets. A peer without a share can still send
    // each message as a request.
    const uint32_t most = std::min(share_, std::max(kShareMin, shares_.free() / kSharesFree));
    const bool there = shares_.take_all(most);
    if (!there && !contexts_[context]->all_may_ask) {
      link.say.refused |= 1ull << context;
      peers_.want(link);
      return;
    }
    flow = Inflow(there ? static_cast<uint16_t>(most) : 0);
    link.large.records_in[context] = RecvAccount(kRecordWindow);
  }
  link.say.opened |= 1ull << context;
  peers_.want(link);
}

void Inflows::grow(Link& link, uint32_t context) {
  Inflow& flow = link.in[context];
  const uint32_t lacks = share_ - std::min<uint32_t>(share_, flow.window());
  const uint32_t more = std::min(lacks, shares_.free() / kSharesFree);
  if (more >= kShareMin && shares_.take_all(more)) {
    flow.grow(static_cast<uint16_t>(more));
    flow.half = flow.window() / 2;
    say_credit(link, context);
  }
}

void Inflows::close(Link& link, uint32_t context) {
  Inflow& flow = link.in[context];
  if (flow.open) {
    flow.half = flow.arrived();
    shares_.put(flow.close());
    flow.open = false;
    flow.early = 0;
    records_lent_.put(link.large.records_in[context].debt());
    static_cast<void>(link.large.records_in[context].close());
  }
}

void Inflows::return_credit(const Origin& origin, uint32_t to, uint32_t count) {
  Link& link = *origin.link;
  Inflow& flow = link.in[to];
  if (origin.session != link.session || !flow.open) {
    shares_.put(count);  // the session is over or the context closed: there is no share any more
    return;
  }
  flow.free_known(count);  // credits for buffers are never lent
  // The peer learns its new limit from the next message to it, or from a kCredit if due().
  if (flow.due()) [[unlikely]] {
    say_credit(link, to);
  }
}

void Inflows::say_credit(Link& link, uint32_t context) {
  link.say.credit |= 1ull << context;
  peers_.want(link);
}

void Inflows::return_record(const Origin& origin, uint32_t to) {
  Link& link = *origin.link;
  if (origin.session != link.session || !link.in[to].open) {
    return;  // the session is over or the context closed: there is no record any more
  }
  RecvAccount& records = link.large.records_in[to];
  if (records.free()) {
    records_lent_.put(1);
  }
  if (records.due()) {
    link.say.records |= 1ull << to;
    peers_.want(link);
  }
}

bool Inflows::lend_records(Link& link, uint32_t context) {
  RecvAccount& records = link.large.records_in[context];
  if (!link.in[context].open || !records.exhausted()) {
    return true;
  }
  if (records.committed() + kRecordWindow > kWindowMax || !records_lent_.take_all(kRecordWindow)) {
    return false;
  }
  records.lend(kRecordWindow);
  link.say.records |= 1ull << context;
  peers_.want(link);
  return true;
}

}  // namespace rio::msg
