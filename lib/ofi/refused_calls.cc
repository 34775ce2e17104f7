// Calls that an endpoint refuses: before fi_enable(), or without the capability.
#include "lib/ofi/fi_endpoint.hpp"

namespace rio::ofi {
namespace {

template <class Result, class... Arguments>
using Call = Result (*)(Arguments...);

/// Converts to a call of any signature, which returns kRc.
template <int kRc>
struct Refusal {
  template <class Result, class... Arguments>
  operator Call<Result, Arguments...>() const {
    return [](Arguments...) -> Result { return kRc; };
  }
};

template <int kRc>
Calls refused_calls() {
  const Refusal<kRc> no{};
  static fi_ops_msg msg = {sizeof(msg), no, no, no, no, no, no, no, no, no};
  static fi_ops_tagged tagged = {sizeof(tagged), no, no, no, no, no, no, no, no, no};
  static fi_ops_rma rma = {sizeof(rma), no, no, no, no, no, no, no, no, no};
  // The queries for valid atomic operations work on every endpoint.
  const fi_ops_atomic& real = *atomic_ops();
  static fi_ops_atomic atomic = {sizeof(atomic),
                                 no,
                                 no,
                                 no,
                                 no,
                                 no,
                                 no,
                                 no,
                                 no,
                                 no,
                                 no,
                                 real.writevalid,
                                 real.readwritevalid,
                                 real.compwritevalid};
  return {&msg, &tagged, &rma, &atomic};
}

}  // namespace

Calls calls_before_enable() {
  return refused_calls<-FI_EOPBADSTATE>();
}

Calls calls_without_capability() {
  return refused_calls<-FI_EOPNOTSUPP>();
}

}  // namespace rio::ofi
