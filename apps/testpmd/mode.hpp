/// @file
/// A mode: it makes the streams of a run. One kind of stream a file: mode_NAME.cc.
#pragma once

#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/testpmd/stream.hpp"

namespace rio::testpmd {

using Streams = std::vector<std::unique_ptr<Stream>>;

/// A mode. Stateless; streams hold the state.
struct Mode {
  const char* name;
  uint32_t max_bytes = regs::kMessageBytesMax;  ///< largest --size
  bool takes_offset = true;                     ///< --offset means something
  bool sends_to_peers = true;                   ///< each port needs a peer
  const char* latency_of;                       ///< what the latency is, for the report
  /// Check the options for this mode. @return 0 or -EINVAL, `error` names fault and remedy. Null:
  /// all are good.
  int (*check)(const RunSetup& setup, std::string* error) = nullptr;
  /// Make and open the streams. @return 0, or -EINVAL with the cause in `error`.
  int (*make_streams)(const RunSetup& setup, Streams* streams, std::string* error);
  /// The traffic, for the report: "16 bits". Null: the size of the messages.
  std::string (*describe)(const RunSetup& setup) = nullptr;
};

extern const Mode kIoMode;
extern const Mode kTxonlyMode;
extern const Mode kRxonlyMode;
extern const Mode kFlowgenMode;
extern const Mode kPingpongMode;
extern const Mode kDedicatedMode;
extern const Mode kDoorbellMode;
extern const Mode kRdmaMode;
extern const Mode kBarrierMode;

/// All modes, in the order of the help.
[[nodiscard]] std::span<const Mode* const> mode_table();
/// @param error set if there is none, with the names of those that exist. @return null: no such
/// mode.
[[nodiscard]] const Mode* find_mode(std::string_view name, std::string* error);

/// Mode::make_streams for modes whose ports have streams of their own. @param kMake
/// `unique_ptr<Stream>(setup, port)`; null: the port has none.
template <auto kMake>
[[nodiscard]] int make_each(const RunSetup& setup, Streams* streams, std::string* error) {
  for (const auto& port : setup.ports) {
    if (std::unique_ptr<Stream> stream = kMake(setup, *port)) {
      if (stream->open(error) != 0) {
        return -EINVAL;
      }
      streams->push_back(std::move(stream));
    }
  }
  return 0;
}

/// A stream of a class whose constructor takes just these.
template <typename One>
[[nodiscard]] std::unique_ptr<Stream> make_stream(const RunSetup& setup, TestPort& port) {
  return std::make_unique<One>(setup, port);
}

}  // namespace rio::testpmd
