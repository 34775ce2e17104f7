/// @file
/// A mode: it makes the streams of a run. One mode a file: mode_NAME.cc.
#pragma once

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
  uint32_t max_bytes;      ///< largest --size
  bool takes_offset;       ///< --offset means something
  const char* latency_of;  ///< what the latency is, for the report
  /// Check the options for this mode. @return 0 or -EINVAL, `error` names fault and remedy. Null:
  /// all are good.
  int (*check)(const RunSetup& setup, std::string* error);
  /// @return 0, or -errno with a cause in `error`.
  int (*make_streams)(const RunSetup& setup, Streams* streams, std::string* error);
};

extern const Mode kIoMode;
extern const Mode kTxonlyMode;
extern const Mode kRxonlyMode;
extern const Mode kFlowgenMode;
extern const Mode kPingpongMode;
extern const Mode kDedicatedMode;
extern const Mode kDoorbellMode;
extern const Mode kRdmaMode;

/// All modes, in the order of the help.
[[nodiscard]] std::span<const Mode* const> mode_table();
/// @param error set if there is none, with the names of those that exist. @return null: no such
/// mode.
[[nodiscard]] const Mode* find_mode(std::string_view name, std::string* error);

/// Make a stream for each port that `make(TestPort&, unique_ptr<Stream>*)` gives one for.
/// @return 0, or what `make` returned.
template <typename Make>
[[nodiscard]] int make_each(const RunSetup& setup, Streams* streams, Make&& make) {
  for (const auto& port : setup.ports) {
    std::unique_ptr<Stream> stream;
    if (const int rc = make(*port, &stream); rc != 0) {
      return rc;
    }
    if (stream != nullptr) {
      streams->push_back(std::move(stream));
    }
  }
  return 0;
}

}  // namespace rio::testpmd
