#include "apps/msgrate/options.hpp"

#include <cstdio>
#include <map>

#include <CLI/CLI.hpp>

#include "lib/skifch/skifch.h"

namespace rio::msgrate {
namespace {

constexpr const char* kFooter = R"(Examples
  rio-msgrate                                   16 bytes, two processes of this machine
  rio-msgrate --size 64 --count 5000000
  rio-msgrate --test latency --size 8
  rio-msgrate --api tag --test bandwidth --size 1048576 --count 5000
  rio-msgrate --api tag --test copied --size 4194304 --count 256
  rio-msgrate --card shm:job,id=2 --peer 1 --role recv &
  rio-msgrate --card shm:job,id=1 --peer 2 --role send --json -

Exit code
  0  done
  1  it could not be done; the reason is on stderr
  2  wrong command line)";

constexpr uint32_t kCountMax = 1u << 30;
constexpr uint32_t kSizeMax = 64u << 20;
constexpr uint32_t kCopiedMin = 16;

}  // namespace

bool parse_options(int argc, char** argv, Options* out, int* code) {
  const std::map<std::string, Role> roles{
      {"both", Role::kBoth}, {"send", Role::kSend}, {"recv", Role::kRecv}};
  const std::map<std::string, Test> tests{{"rate", Test::kRate},
                                          {"latency", Test::kLatency},
                                          {"bandwidth", Test::kBandwidth},
                                          {"copied", Test::kCopied}};
  const std::map<std::string, Api> apis{{"skifch", Api::kSkifCh}, {"tag", Api::kTag}};
  CLI::App app(
      "Message rate, latency and bandwidth between two processes: one sends, the "
      "other receives, after [S4].");
  std::string json;
  app.add_option("--card", out->card, "Card, as docs/embedding.md names them; default: emulated");
  app.add_option("--peer", out->peer, "destID of the other side's card");
  app.add_option("--role", out->role, "send, recv, or both: two processes")
      ->transform(CLI::CheckedTransformer(roles));
  app.add_option("--api", out->api, "skifch, or tag: tagged messages")
      ->transform(CLI::CheckedTransformer(apis));
  app.add_option(
         "--test", out->test,
         "rate, latency, bandwidth, or copied: bytes that are copied on the way, by addresses")
      ->transform(CLI::CheckedTransformer(tests));
  app.add_option("--size", out->size_bytes, "Bytes of a message")->check(CLI::Range(0u, kSizeMax));
  app.add_option("--count", out->count, "Messages, or round trips; copied: pairs of addresses")
      ->check(CLI::Range(1u, kCountMax));
  app.add_option("--cpus", out->cpus, "CPUs of sender and receiver, with --role both: \"0,1\"");
  app.add_option("--json", json, "-: print a JSON object")->check(CLI::IsMember({"-"}));
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int rc = app.exit(error);
    *code = rc == 0 ? 0 : 2;
    return false;
  }
  if (out->role != Role::kBoth && (out->card.empty() || out->peer == 0)) {
    std::fprintf(
        stderr, "rio-msgrate: --role %s needs --card and --peer, as --card shm:job,id=1 --peer 2\n",
        out->role == Role::kSend ? "send" : "recv");
    *code = 2;
    return false;
  }
  if (out->test == Test::kCopied && (out->api != Api::kTag || out->size_bytes < kCopiedMin)) {
    std::fprintf(stderr,
                 "rio-msgrate: --test copied is of tagged messages of %u bytes or more: add --api "
                 "tag --size 4194304\n",
                 kCopiedMin);
    *code = 2;
    return false;
  }
  if (out->api == Api::kSkifCh && out->size_bytes > SKIFCH_MESSAGE_MAX) {
    std::fprintf(stderr,
                 "rio-msgrate: SkifCh has messages of at most %d bytes: --api tag has longer\n",
                 SKIFCH_MESSAGE_MAX);
    *code = 2;
    return false;
  }
  out->json = !json.empty();
  return true;
}

}  // namespace rio::msgrate
