// Bursts through riopmd.h and through riopmd.hpp, for callgrind to count; run by overhead_test.py.
// usage: pmd_embed_overhead c|cpp
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "pmd/api/handle.hpp"

namespace {

constexpr int kBursts = 1000;

// Two functions of the same shape, so that only the wrappers differ. Empty bursts do not step the
// emulated card, whose instruction count depends on the time.
[[gnu::noinline]] void counted_c(rio_card* card, rio_rx_message* out) {
  for (int i = 0; i < kBursts; ++i) {
    (void)rio_rx_burst(card, out, 0);
    (void)rio_tx_reap(card, nullptr, 0);
  }
}

[[gnu::noinline]] void counted_cpp(rio::Endpoint& endpoint, rio::pmd::RxMessage* out) {
  rio::pmd::SharedRxQueue& shared = endpoint.shared();
  rio::pmd::TxQueue& tx = endpoint.tx();
  for (int i = 0; i < kBursts; ++i) {
    (void)shared.burst(out, 0);
    (void)tx.reap(nullptr, 0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::unique_ptr<rio::Endpoint> endpoint;
  if (argc != 2 || rio::Endpoint::open("emu:loop", {}, &endpoint) != 0) {
    std::fprintf(stderr, "usage: pmd_embed_overhead c|cpp\n");
    return 2;
  }
  const auto card = rio::pmd::api::wrap(std::move(endpoint));
  rio_rx_message c_out;
  rio::pmd::RxMessage cpp_out;
  if (std::strcmp(argv[1], "c") == 0) {
    counted_c(card.get(), &c_out);
  } else {
    counted_cpp(*card->endpoint, &cpp_out);
  }
  return 0;
}
