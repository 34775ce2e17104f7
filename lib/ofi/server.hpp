/// @file
/// Serves the requests of peers on this domain's memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/slab.hpp"
#include "lib/ofi/ask.hpp"
#include "lib/ofi/bindings.hpp"
#include "lib/ofi/memory.hpp"
#include "lib/tag/tagged_context.hpp"

namespace rio::ofi {

/// The `user` of a request on the endpoint's context for memory. Under a Guard.
class Party {
 public:
  /// Called when the request is done; it may be reused.
  virtual void done(tag::Request& request) = 0;

 protected:
  ~Party() = default;
};

/// The server of an endpoint. All functions under a Guard.
class Server {
 public:
  Server(const Bindings& bound, Regions& regions) : bound_(bound), regions_(regions) {}

  /// @param tag where requests arrive; outlives this. @param replies where answers go; outlives
  /// this. @return 0, -FI_ENOMEM.
  [[nodiscard]] int start(tag::TaggedContext& tag, tag::TaggedContext& replies);
  /// Whether a peer waits for an answer.
  [[nodiscard]] bool busy() const { return answers_under_way_ != 0; }

 private:
  // At most so many requests are read before some are answered, so no peer can fill our memory.
  static constexpr uint32_t kAnswersMax = 1024;
  static constexpr uint32_t kAsks = 32;

  /// A posted receive for requests.
  struct Ask final : Party {
    void done(tag::Request&) override { server->arrived(*this); }
    Server* server = nullptr;
    tag::RecvRequest request;
    std::array<uint8_t, kAskBytesMax> bytes;
  };
  /// A request that is not answered yet.
  struct Answer final : Party {
    void done(tag::Request& request) override { server->went_on(*this, request); }
    Server* server = nullptr;
    AskHeader ask = {};
    tag::Address from = 0;
    uint32_t session = 0;  // in which the request came
    int error = 0;
    bool again = false;  // the answer was refused once, and is sent again
    Memory* memory = nullptr;
    Use use;  // keeps the memory in use
    tag::RecvRequest data;
    tag::SendRequest reply;
    std::unique_ptr<uint8_t[]> old;  // values to be returned
    WindowReply window = {};
  };

  void post(Ask& ask);
  void arrived(Ask& ask);
  void refuse(tag::Address from);
  [[nodiscard]] bool serve(const Ask& ask);
  void serve(Answer& answer, std::span<const uint8_t> rest);
  [[nodiscard]] int compute(Answer& answer, uint8_t* at, std::span<const uint8_t> rest);
  void show_window(Answer& answer);
  [[nodiscard]] bool open_window(Memory& memory, const Answer& answer, WindowReply* out);
  void take_data(Answer& answer, uint8_t* at);
  void went_on(Answer& answer, tag::Request& request);
  void reply(Answer& answer, const uint8_t* bytes, uint64_t count);
  [[nodiscard]] uint32_t session_with(tag::Address peer) const;
  void end(Answer& answer);
  void tell(const Answer& answer);

  const Bindings& bound_;
  Regions& regions_;
  tag::TaggedContext* tag_ = nullptr;
  tag::TaggedContext* replies_ = nullptr;
  uint32_t answers_under_way_ = 0;
  std::vector<Ask*> waiting_;
  std::unique_ptr<Ask[]> asks_;
  base::Slab<Answer> answers_;
};

}  // namespace rio::ofi
