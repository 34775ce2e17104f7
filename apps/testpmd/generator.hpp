/// @file
/// The stream of txonly, rxonly and flowgen: sends, or receives, or both.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "apps/testpmd/shared_sink.hpp"
#include "apps/testpmd/tx_source.hpp"

namespace rio::testpmd {

/// One port. It always takes what comes in, since what is refused comes again and again.
class Generator final : public Stream {
 public:
  /// @param ways empty: it only receives. @param expected_flow who sends here, where messages are
  /// too short to say. @return 0, or -errno with the remedy in `error`.
  [[nodiscard]] static int create(const RunSetup& setup, TestPort& port, std::vector<Way> ways,
                                  uint16_t expected_flow, std::unique_ptr<Stream>* out,
                                  std::string* error);

  uint32_t turn(bool may_send) noexcept override;
  [[nodiscard]] bool quiet() const noexcept override { return !source_ || source_->quiet(); }
  [[nodiscard]] bool sends() const override { return source_ != nullptr; }
  [[nodiscard]] std::string label() const override;
  [[nodiscard]] uint32_t port_index() const override { return port_.index(); }

 private:
  Generator(const RunSetup& setup, TestPort& port, uint16_t expected_flow);

  TestPort& port_;
  SharedSink sink_;
  std::unique_ptr<TxSource> source_;
  uint64_t count_;
};

/// The ways that a port sends by; none: it only receives.
using WaysOf = std::function<std::vector<Way>(const TestPort& port)>;

/// A generator for each port. @param flows of a port: flow numbers are port index * flows and up.
/// @return as Generator::create.
[[nodiscard]] int make_generators(const RunSetup& setup, uint32_t flows, const WaysOf& ways_of,
                                  std::vector<std::unique_ptr<Stream>>* streams,
                                  std::string* error);

/// To the port's peer, one way for each letter of the mailboxes that messages of this size may
/// take.
[[nodiscard]] std::vector<Way> ways_by_letter(const RunSetup& setup, const TestPort& port);

/// TestPort whose messages come in at `port`; `port` itself where that is another process's.
[[nodiscard]] uint32_t sender_to(const RunSetup& setup, const TestPort& port);

}  // namespace rio::testpmd
