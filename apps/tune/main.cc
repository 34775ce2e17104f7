// rio-tune: from which size on messages are moved where they are, measured on this machine.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/common/std_streams.hpp"
#include "apps/tune/measure.hpp"
#include "apps/tune/options.hpp"
#include "lib/msg/profile.hpp"

namespace rio::tune {
namespace {

/// On a terminal only.
void show_progress(size_t done, size_t all) {
  if (isatty(STDERR_FILENO) == 0) {
    return;
  }
  if (done == all) {
    std::fprintf(stderr, "\r%40s\r", "");
  } else {
    std::fprintf(stderr, "\rmeasuring  %zu of %zu sizes", done, all);
  }
}

void no_progress(size_t /*done*/, size_t /*all*/) {}

/// The destIDs go through pipes, since a card may have been given one.
int exchange(int to, int from, uint32_t own, uint32_t* peer) {
  if (write(to, &own, sizeof(own)) != sizeof(own) ||
      read(from, peer, sizeof(*peer)) != sizeof(*peer)) {
    std::fprintf(stderr, "rio-tune: the other side could not open its card\n");
    return -EPIPE;
  }
  return 0;
}

struct Pipes {
  int to;
  int from;
};

int run_side(const Options& options, const std::string& card, Pipes pipes, bool sends,
             std::vector<Point>* points, bool* is_emulated) {
  std::unique_ptr<Side> side;
  uint32_t peer = 0;
  int rc = Side::open(card, &side);
  rc = rc != 0 ? rc : exchange(pipes.to, pipes.from, side->dest_id(), &peer);
  rc = rc != 0 ? rc : side->meet(peer);
  rc = rc != 0 ? rc : side->run(options, sends, sends ? show_progress : no_progress, points);
  if (rc == 0) {
    *is_emulated = side->is_emulated();
  }
  return rc;
}

int measure(const Options& options, std::vector<Point>* points, bool* is_emulated) {
  const std::string fabric = "shm:rio-tune-" + std::to_string(getpid());
  int there[2];
  int back[2];
  if (pipe(there) != 0 || pipe(back) != 0) {
    std::perror("rio-tune: pipe");
    return -errno;
  }
  const pid_t child = fork();
  if (child < 0) {
    std::perror("rio-tune: fork");
    return -errno;
  }
  if (child == 0) {
    close(there[1]);
    close(back[0]);
    const std::string& card = options.other.empty() ? fabric : options.other;
    const int rc = run_side(options, card, {back[1], there[0]}, false, points, is_emulated);
    std::_Exit(rc == 0 ? 0 : 1);
  }
  close(there[0]);
  close(back[1]);
  const std::string& card = options.card.empty() ? fabric : options.card;
  const int rc = run_side(options, card, {there[1], back[0]}, true, points, is_emulated);
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
  std::ofstream file(part, std::ios::trunc);
  file << text;
  file.close();
  if (!file) {
    std::fprintf(stderr, "rio-tune: %s: %s; name another file with --output\n", path.c_str(),
                 std::strerror(errno));
    std::filesystem::remove(part, error);
    return 1;
  }
  std::filesystem::rename(part, target, error);
  if (error) {
    std::fprintf(stderr, "rio-tune: %s: %s; name another file with --output\n", path.c_str(),
                 error.message().c_str());
    std::filesystem::remove(part, error);
    return 1;
  }
  return 0;
}

void print_table(const std::vector<Point>& points, const msg::Profile& profile, bool is_emulated) {
  std::printf("%10s  %12s  %12s\n", "bytes", "copied ns", "moved ns");
  for (const Point& point : points) {
    std::printf("%10u  %12.0f  %12.0f%s\n", point.size_bytes, point.copied_ns, point.moved_ns,
                point.size_bytes == profile.eager_bytes ? "  <- up to here: copied" : "");
  }
  std::printf("eager_bytes = %llu%s\n", static_cast<unsigned long long>(profile.eager_bytes),
              is_emulated ? ", of emulated cards" : "");
}

void print_json(const std::vector<Point>& points, const msg::Profile& profile, bool is_emulated,
                const std::string& path) {
  nlohmann::json json;
  json["eager_bytes"] = profile.eager_bytes;
  json["emulated"] = is_emulated;
  json["profile"] = path;
  for (const Point& point : points) {
    json["sizes"].push_back(
        {{"size", point.size_bytes}, {"copied_ns", point.copied_ns}, {"moved_ns", point.moved_ns}});
  }
  std::printf("%s\n", json.dump().c_str());
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
  std::vector<Point> points;
  bool is_emulated = false;
  if (measure(options, &points, &is_emulated) != 0) {
    return 1;
  }
  msg::Profile profile;
  profile.eager_bytes = border(points);
  std::string text = "# Measured by rio-tune";
  text += is_emulated ? ", on emulated cards.\n" : ".\n";
  text += to_text(profile);
  if (path == "-") {
    std::printf("%s", text.c_str());
    return 0;
  }
  // First of all: it took long, and may be all that there will be.
  if (options.json) {
    print_json(points, profile, is_emulated, path);
  } else {
    print_table(points, profile, is_emulated);
  }
  std::fflush(stdout);
  if (write_profile(path, text) != 0) {
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
