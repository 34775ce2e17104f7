// rio-tune: from which size on messages are moved where they are, measured on this machine.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/common/std_streams.hpp"
#include "apps/tune/measure.hpp"
#include "apps/tune/options.hpp"
#include "base/fd.hpp"
#include "lib/msg/profile.hpp"

namespace rio::tune {
namespace {

constexpr int kExitVague = 3;

/// Tell the other process the destID of this card, since a card may have been given one, and hear
/// of its.
int exchange(const base::Fd& socket, uint32_t own, uint32_t* peer) {
  if (write(socket.get(), &own, sizeof(own)) != sizeof(own) ||
      read(socket.get(), peer, sizeof(*peer)) != sizeof(*peer)) {
    std::fprintf(stderr, "rio-tune: the other side could not open its card\n");
    return -EPIPE;
  }
  return 0;
}

int run_side(const Options& options, const std::string& card, const base::Fd& socket, bool sends,
             std::vector<Point>* points, bool* is_emulated) {
  Side side;
  uint32_t peer = 0;
  int rc = side.open(card);
  rc = rc != 0 ? rc : exchange(socket, side.dest_id(), &peer);
  rc = rc != 0 ? rc : side.meet(peer);
  rc = rc != 0 ? rc : side.run(options, sends, points);
  if (rc == 0) {
    *is_emulated = side.is_emulated();
  }
  return rc;
}

int measure(const Options& options, std::vector<Point>* points, bool* is_emulated) {
  const std::string fabric = "shm:rio-tune-" + std::to_string(getpid());
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
    std::perror("rio-tune: socketpair");
    return -EIO;
  }
  base::Fd own(ends[0]);
  base::Fd peer(ends[1]);
  const pid_t child = fork();
  if (child < 0) {
    std::perror("rio-tune: fork");
    return -EIO;
  }
  if (child == 0) {
    own = {};
    const std::string& card = options.other.empty() ? fabric : options.other;
    const int rc = run_side(options, card, peer, false, points, is_emulated);
    std::_Exit(rc == 0 ? 0 : 1);
  }
  peer = {};
  const std::string& card = options.card.empty() ? fabric : options.card;
  const int rc = run_side(options, card, own, true, points, is_emulated);
  own = {};  // ends the wait of a child that still expects this side's destID
  int status = 0;
  static_cast<void>(waitpid(child, &status, 0));
  return rc != 0 ? rc : WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

/// In one piece, or not at all.
int write_profile(const std::string& path, const std::string& text) {
  std::error_code error;
  const std::filesystem::path target(path);
  if (target.has_parent_path()) {
    std::filesystem::create_directories(target.parent_path(), error);
  }
  const std::string part = path + "." + std::to_string(getpid());
  errno = 0;
  std::ofstream file(part, std::ios::trunc);
  file << text;
  file.close();
  error.assign(file ? 0 : errno != 0 ? errno : EIO, std::generic_category());
  if (!error) {
    std::filesystem::rename(part, target, error);
  }
  if (error) {
    std::fprintf(stderr, "rio-tune: %s: %s; name another file with --output\n", path.c_str(),
                 error.message().c_str());
    std::filesystem::remove(part, error);
    return 1;
  }
  return 0;
}

/// The measured values.
struct Result {
  std::vector<Point> points;
  msg::Profile profile;
  Spread range{};  // of its border
  bool is_emulated = false;
};

void print_table(const Result& result) {
  std::printf("%10s  %12s  %12s\n", "bytes", "copied ns", "moved ns");
  const uint64_t border = result.profile.eager_bytes;
  for (const Point& point : result.points) {
    std::printf("%10u  %12.0f  %12.0f%s\n", point.size_bytes, point.copied_ns, point.moved_ns,
                point.size_bytes == border ? "  <- up to here: copied" : "");
  }
  std::printf("eager_bytes = %" PRIu64 ", of single rounds %" PRIu64 " to %" PRIu64 "%s\n", border,
              result.range.low, result.range.high, result.is_emulated ? ", of emulated cards" : "");
}

void print_json(const Result& result, const std::string& path) {
  nlohmann::json json;
  json["eager_bytes"] = result.profile.eager_bytes;
  json["eager_bytes_low"] = result.range.low;
  json["eager_bytes_high"] = result.range.high;
  json["emulated"] = result.is_emulated;
  json["profile"] = path;
  for (const Point& point : result.points) {
    json["sizes"].push_back(
        {{"size", point.size_bytes}, {"copied_ns", point.copied_ns}, {"moved_ns", point.moved_ns}});
  }
  std::printf("%s\n", json.dump().c_str());
}

/// @return whether the result is worth writing; if not, stderr has it.
bool is_sure(const Result& result, bool force) {
  if (!result.range.is_vague() || force) {
    return true;
  }
  std::fprintf(stderr,
               "rio-tune: single rounds put the border anywhere from %" PRIu64 " to %" PRIu64
               " bytes, so nothing is written; stop what else runs on this machine and measure "
               "again, without --quick, or write it by --force\n",
               result.range.low, result.range.high);
  return false;
}

/// As the file has it.
std::string text_of(const Result& result) {
  std::string text = "# Measured by rio-tune";
  text += result.is_emulated ? ", on emulated cards" : "";
  text += "; in single rounds " + std::to_string(result.range.low) + " to ";
  return text.append(std::to_string(result.range.high)).append(".\n") + to_text(result.profile);
}

int run(int argc, char** argv) {
  Options options;
  int code = 0;
  if (!parse_options(argc, argv, &options, &code)) {
    return code;
  }
  const std::string path = options.output.empty() ? msg::profile_path() : options.output;
  if (path.empty()) {
    std::fprintf(stderr,
                 "rio-tune: no place for the profile (RIO_PROFILE is \"none\", or there is "
                 "no HOME); name a file with --output\n");
    return 2;
  }
  Result result;
  if (measure(options, &result.points, &result.is_emulated) != 0) {
    return 1;
  }
  result.profile.eager_bytes = border(result.points);
  result.range = spread(result.points);
  const bool is_printed = path == "-";
  // First of all: it took long, and may be all that there will be.
  if (options.json) {
    print_json(result, path);
  } else if (!is_printed) {
    print_table(result);
  }
  std::fflush(stdout);
  if (!is_sure(result, options.force)) {
    return kExitVague;
  }
  if (is_printed) {
    std::printf("%s", text_of(result).c_str());
    return 0;
  }
  if (write_profile(path, text_of(result)) != 0) {
    return 1;
  }
  if (!options.json) {
    std::printf("written to %s\n", path.c_str());
  }
  return 0;
}

}  // namespace
}  // namespace rio::tune

int main(int argc, char** argv) {
  return rio::apps::run_program("rio-tune", rio::tune::run, argc, argv);
}
