#include "lib/msg/send_stripes.hpp"

#include <cerrno>
#include <utility>

namespace rio::msg {

int SendStripes::granted(SendTransfer& whole, const StripeBody& body, uint64_t len_bytes,
                         SendTransfer** out) {
  const uint32_t number = body.grant.stripe;
  const uint32_t begun = whole.stripes != nullptr ? whole.stripes->begun : 0;
  if (number > begun) {
    return number == begun + 1 ? begin(whole, body, len_bytes, out) : -EPROTO;
  }
  *out = whole.link->large.sends.find([&](const SendTransfer& each) {
    return each.stripes == whole.stripes && each.stripe == number;
  });
  return *out == nullptr || len_bytes <= (*out)->granted_bytes - (*out)->arrived_bytes ? 0
                                                                                       : -EPROTO;
}

int SendStripes::begin(SendTransfer& whole, const StripeBody& body, uint64_t len_bytes,
                       SendTransfer** out) {
  const bool is_first = whole.stripes == nullptr;
  const uint64_t taken = is_first ? 0 : whole.stripes->taken_bytes;
  // Parts follow each other, so they do not overlap.
  if (body.whole_bytes > whole.rest_bytes ||
      (!is_first && body.whole_bytes != whole.granted_bytes) || body.first_byte != taken ||
      len_bytes > body.whole_bytes - taken || body.grant.attempt != 0) {
    return -EPROTO;
  }
  SendTransfer* const stripe = stripes_.get();
  Stripes<SendTransfer>* const stripes = is_first ? divided_.get() : whole.stripes;
  if (stripe == nullptr || stripes == nullptr) {
    if (stripe != nullptr) {
      stripes_.put(stripe);
    }
    return -ENOMEM;
  }
  stripes->whole = &whole;
  stripes->taken_bytes += len_bytes;
  stripes->begun = body.grant.stripe;
  ++stripes->live;
  whole.stripes = stripes;
  whole.granted_bytes = body.whole_bytes;
  whole.settled = true;
  stripe->context = whole.context;
  stripe->link = whole.link;
  stripe->path = whole.path;
  stripe->id = whole.id;
  stripe->stripe = body.grant.stripe;
  stripe->stripes = stripes;
  stripe->rest = whole.rest + body.first_byte;
  stripe->rest_bytes = len_bytes;
  stripe->granted_bytes = len_bytes;
  stripe->settled = true;
  whole.link->large.sends.append(*stripe);
  *out = stripe;
  return 0;
}

SendTransfer& SendStripes::end(SendTransfer& stripe, bool is_good) {
  Stripes<SendTransfer>& of = *stripe.stripes;
  of.done_bytes += is_good ? stripe.rest_bytes : 0;
  --of.live;
  stripes_.put(&stripe);
  return *of.whole;
}

void SendStripes::free(SendTransfer& whole) {
  divided_.put(std::exchange(whole.stripes, nullptr));
}

}  // namespace rio::msg
