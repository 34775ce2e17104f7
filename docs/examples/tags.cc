// tags: workers square numbers for a master; messages are told apart by their tags.
// usage: tags master CARD WORKERS
//        tags worker CARD DESTID
// where CARD is "shm:NAME" (emulated cards of one machine) or a PCI address, DESTID the master's
#include <riopmd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <riomsg.hpp>
#include <string>
#include <vector>

namespace {

constexpr uint32_t kEndpoint = 1;
constexpr uint32_t kPatienceMs = 10000;
constexpr size_t kNumbers = 100000;  // of a worker; long enough to be moved without a copy

// The upper half of the match bits says what a message is, the lower half which.
constexpr uint64_t kHello = uint64_t{1} << 32;
constexpr uint64_t kTask = uint64_t{2} << 32;
constexpr uint64_t kResult = uint64_t{3} << 32;
constexpr uint64_t kWhich = 0xFFFFFFFF;

using Numbers = std::vector<uint64_t>;

int fail(const char* what, int result) {
  std::fprintf(stderr, "tags: %s: %s\n", what, rio_strerror(result));
  return 1;
}

std::span<std::byte> bytes_of(Numbers& numbers) {
  return std::as_writable_bytes(std::span(numbers));
}

/// @param begun what a function that begins something has said. @return 0, or why it failed.
int finish(rio::api::Tag& tag, int begun, rio_tag_request* request, rio_tag_done* done) {
  const int rc = begun == 0 ? tag.wait(request, kPatienceMs, done) : begun;
  if (rc != 1) {
    return rc == 0 ? -ETIMEDOUT : rc;
  }
  return done->status;
}

int send(rio::api::Tag& tag, rio_msg_address to, uint64_t bits, Numbers& numbers) {
  rio_tag_request* request = nullptr;
  rio_tag_done done{};
  const int begun = tag.send(to, bits, bytes_of(numbers), nullptr, &request, &done);
  return finish(tag, begun, request, &done);
}

int receive(rio::api::Tag& tag, const rio_tag_pattern& pattern, Numbers& numbers,
            rio_tag_done* done) {
  rio_tag_request* request = nullptr;
  const int begun = tag.receive(pattern, bytes_of(numbers), nullptr, &request, done);
  return finish(tag, begun, request, done);
}

int work(rio::api::Tag& tag, rio_msg_address master) {
  Numbers none;
  Numbers numbers(kNumbers);
  rio_tag_done task{};
  if (const int rc = send(tag, master, kHello, none); rc != 0) {
    return fail("hello", rc);
  }
  // Ignore the number of the task.
  if (const int rc = receive(tag, {kTask, kWhich, master, 0}, numbers, &task); rc != 0) {
    return fail("task", rc);
  }
  for (uint64_t& number : numbers) {
    number *= number;
  }
  const int rc = send(tag, master, kResult | (task.bits & kWhich), numbers);
  return rc == 0 ? 0 : fail("result", rc);
}

int lead(rio::api::Tag& tag, uint32_t workers) {
  Numbers none;
  std::printf("%u workers wanted at destID %u\n", workers, tag.self() >> 8);
  std::fflush(stdout);
  for (uint32_t task = 0; task < workers; ++task) {
    rio_tag_done hello{};
    if (const int rc = receive(tag, {kHello, 0, RIO_TAG_ANY, 0}, none, &hello); rc != 0) {
      return fail("hello", rc);
    }
    Numbers numbers(kNumbers, task + 1);
    if (const int rc = send(tag, hello.source, kTask | task, numbers); rc != 0) {
      return fail("task", rc);
    }
  }
  // In the order of tasks, in whatever order they come.
  for (uint32_t task = 0; task < workers; ++task) {
    Numbers squares(kNumbers);
    rio_tag_done result{};
    if (const int rc = receive(tag, {kResult | task, 0, RIO_TAG_ANY, 0}, squares, &result);
        rc != 0) {
      return fail("result", rc);
    }
    const uint64_t right = uint64_t{task + 1} * (task + 1);
    for (const uint64_t square : squares) {
      if (square != right) {
        std::fprintf(stderr, "tags: task %u came back wrong\n", task);
        return 1;
      }
    }
    std::printf("task %u: %zu squares of %u\n", task, kNumbers, task + 1);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string role = argc == 4 ? argv[1] : "";
  if (role != "master" && role != "worker") {
    std::fprintf(stderr, "usage: tags master CARD WORKERS | tags worker CARD DESTID\n");
    return 2;
  }
  const auto number = static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 0));
  rio_msg_options options = rio::api::msg_options();
  options.sleeps = 1;
  rio::api::Port port;
  rio::api::Tag tag;  // closed before the port, since it was made after it
  if (const int rc = rio::api::Port::open(argv[2], options, &port); rc != 0) {
    return fail(argv[2], rc);
  }
  if (const int rc = rio::api::Tag::open(port, kEndpoint, &tag); rc != 0) {
    return fail("endpoint", rc);
  }
  if (role == "worker" && number == port.dest_id()) {  // it was free: no master has it
    std::fprintf(stderr, "tags: destID %u is our own; start the master first\n", number);
    return 1;
  }
  const int code =
      role == "master" ? lead(tag, number) : work(tag, rio_msg_address_of(number, kEndpoint));
  // All sends have to arrive before this process ends.
  if (const int rc = tag.flush(kPatienceMs); rc != 0) {
    return fail("flush", rc);
  }
  return code;
}
