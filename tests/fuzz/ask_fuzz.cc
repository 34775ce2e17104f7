// Foreign bytes as a peer's requests for memory. A request that passes is computed, in memory of
// the size that it names.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "lib/ofi/ask.hpp"
#include "lib/ofi/resolve.hpp"

using namespace rio::ofi;

namespace {

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void compute(const AskHeader& ask, std::span<const uint8_t> rest) {
  const auto type = static_cast<fi_datatype>(ask.type);
  const std::unique_ptr<uint8_t[]> memory(new uint8_t[ask.bytes]());
  const std::unique_ptr<uint8_t[]> old(new uint8_t[ask.bytes]);
  const uint8_t* const compare =
      ask.verb == Verb::kCompare ? rest.data() + (rest.size() - ask.bytes) : nullptr;
  apply(type, static_cast<fi_op>(ask.op), memory.get(), rest.data(), compare,
        ask.verb == Verb::kUpdate ? nullptr : old.get(), ask.bytes / size_of(type));
}

void read_as_name(const uint8_t* data) {
  Name name;
  std::memcpy(&name, data, sizeof(name));
  Name read;
  if (read_name(data, name.fabric, &read) == 0) {
    const rio::tag::Address address = context_of(read, read.dest_id);
    require(rio::tag::dest_id_of(address) == name.dest_id);
    require(rio::tag::context_of(address) < kEndpoints * kContextsOfEndpoint);
    char text[128];
    require(print_address(read, text, sizeof(text)) < static_cast<int>(sizeof(text)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == sizeof(Name)) {
    read_as_name(data);
  }
  if (size == sizeof(WindowReply)) {
    WindowReply window;
    std::memcpy(&window, data, sizeof(window));
    // Each byte of the window has an address, by both of its names.
    constexpr uint64_t kAddrEnd = 1ull << 48;
    require(!is_window(window) ||
            (window.bytes != 0 && window.rio_addr % kAddrEnd + window.bytes <= kAddrEnd &&
             window.first + (window.bytes - 1) >= window.first));
  }
  AskHeader ask;
  std::span<const uint8_t> rest;
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[size]);  // sanitizers see a read behind it
  std::memcpy(exact.get(), data, size);
  if (read_ask({exact.get(), size}, &ask, &rest) != 0) {
    return 0;
  }
  require(rest.size() == size - sizeof(ask));
  require(is_atomic(ask.verb) || rest.size() == ask.bytes || rest.empty());
  if (is_atomic(ask.verb)) {
    compute(ask, rest);
  }
  return 0;
}
