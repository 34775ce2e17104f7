// rio-tool regs: registers by name, read, written, dumped, watched, compared.
#include <cinttypes>
#include <cstdio>
#include <memory>

#include "apps/common/registers.hpp"
#include "apps/tool/card_option.hpp"
#include "apps/tool/command.hpp"
#include "apps/tool/pace.hpp"
#include "apps/tool/reg_dump.hpp"
#include "apps/tool/reg_write.hpp"

namespace rio::tool {
namespace {

using pmd::RegWord;

/// Options of the subcommands.
struct Options {
  CardOption card;
  std::vector<std::string> names;
  std::string name;
  std::vector<std::string> values;
  std::string block;
  std::string file;
  std::string other;
  bool all = false;
  Pace pace;
};

int open_card(const GlobalOptions& context, const Options& options, LookedAtCard* out) {
  std::string name;
  if (const int rc = options.card.resolve(context, &name); rc != 0) {
    return rc;
  }
  return open_to_look(context, name, out);
}

/// Registers by name or offset, and whole blocks.
int find_words(const pmd::Card& card, const std::vector<std::string>& names,
               std::vector<RegWord>* out) {
  std::vector<RegWord> words;
  for (const std::string& name : names) {
    RegWord word;
    std::string error;
    if (pmd::find_register(name, &word, &error) == 0) {
      words.push_back(word);
      continue;
    }
    const std::vector<RegWord> block = pmd::words_of(card, name + ".");
    if (block.empty()) {
      (void)complain(error, "'rio-tool regs dump' shows the names of all");
      return -EINVAL;
    }
    words.insert(words.end(), block.begin(), block.end());
  }
  *out = std::move(words);
  return 0;
}

std::string dump_text(const RegDump& dump) {
  std::string text;
  for (const RegValue& value : dump.values) {
    text += apps::word_line(value.word, value.value) + '\n';
  }
  return text;
}

int read(const GlobalOptions& context, const Options& options) {
  LookedAtCard looked;
  std::vector<RegWord> words;
  RegDump dump;
  if (open_card(context, options, &looked) != 0 ||
      find_words(*looked.card, options.names, &words) != 0 ||
      take_dump(*looked.card, words, &dump) != 0) {
    return kExitFailed;
  }
  Json data = Json::array();
  for (const RegValue& value : dump.values) {
    data.push_back(word_json(value));
  }
  print_result(context, data, dump_text(dump));
  return kExitOk;
}

int write(const GlobalOptions& context, const Options& options) {
  LookedAtCard looked;
  std::vector<RegWord> words;
  RegWrite write;
  if (open_card(context, options, &looked) != 0 ||
      find_words(*looked.card, {options.name}, &words) != 0) {
    return kExitFailed;
  }
  if (words.size() != 1) {
    return complain(
        "'" + options.name + "' is a block of " + std::to_string(words.size()) + " registers",
        "name one of them");
  }
  if (plan_write(*looked.card, words[0], options.values, &write) != 0) {
    return kExitFailed;
  }
  if (!context.dry_run && carry_out(*looked.card, write) != 0) {
    return kExitFailed;
  }
  const std::string change = apps::word_line(words[0], write.before) + '\n' +
                             apps::word_line(words[0], write.value) +
                             (context.dry_run ? "  (not written: dry run)\n" : "\n");
  print_result(context,
               {{"before", word_json({words[0], write.before})},
                {"after", word_json({words[0], write.value})},
                {"written", !context.dry_run}},
               change);
  return kExitOk;
}

int dump(const GlobalOptions& context, const Options& options) {
  LookedAtCard looked;
  if (open_card(context, options, &looked) != 0) {
    return kExitFailed;
  }
  const std::vector<RegWord> words = pmd::words_of(*looked.card, options.block);
  if (words.empty()) {
    return complain(apps::no_such_prefix(options.block), "leave --block out to see all");
  }
  RegDump taken;
  if (take_dump(*looked.card, words, &taken) != 0) {
    return kExitFailed;
  }
  if (options.file.empty()) {
    print_result(context, dump_json(taken), dump_text(taken));
    return kExitOk;
  }
  if (!context.dry_run && write_dump(taken, options.file) != 0) {
    return kExitFailed;
  }
  print_result(
      context,
      {{"file", options.file}, {"registers", taken.values.size()}, {"written", !context.dry_run}},
      std::to_string(taken.values.size()) + " registers of " + taken.card +
          (context.dry_run ? " would go to " : " in ") + options.file + '\n');
  return kExitOk;
}

void print_change(const GlobalOptions& context, const RegValue& now, const RegValue* before) {
  if (context.json) {
    Json line = {{"time", utc_text()}};
    line.update(word_json(now));
    std::printf("%s\n", json_text(line).c_str());
    return;
  }
  std::printf("%s%s", time_of_day().c_str(), apps::word_line(now.word, now.value).c_str());
  if (before != nullptr) {
    std::printf("  (was 0x%08x, %+" PRId64 ")", before->value,
                int64_t{now.value} - int64_t{before->value});
  }
  std::printf("\n");
}

int watch(const GlobalOptions& context, const Options& options, Pace& pace) {
  LookedAtCard looked;
  std::vector<RegWord> words;
  if (open_card(context, options, &looked) != 0 ||
      find_words(*looked.card, options.names, &words) != 0) {
    return kExitFailed;
  }
  RegDump before;
  do {
    looked.let_work();
    RegDump now;
    if (take_dump(*looked.card, words, &now) != 0) {
      return kExitFailed;
    }
    for (size_t i = 0; i < now.values.size(); ++i) {
      const bool first = before.values.empty();
      if (first || before.values[i].value != now.values[i].value) {
        print_change(context, now.values[i], first ? nullptr : &before.values[i]);
      }
    }
    before = std::move(now);
  } while (pace.next());
  return kExitOk;
}

int diff(const GlobalOptions& context, const Options& options) {
  RegDump a;
  RegDump b;
  if (read_dump(options.file, &a) != 0) {
    return kExitFailed;
  }
  if (!options.other.empty()) {
    if (read_dump(options.other, &b) != 0) {
      return kExitFailed;
    }
  } else {
    LookedAtCard looked;
    std::vector<RegWord> words;
    for (const RegValue& value : a.values) {
      words.push_back(value.word);
    }
    if (open_card(context, options, &looked) != 0 || take_dump(*looked.card, words, &b) != 0) {
      return kExitFailed;
    }
  }
  const std::vector<RegDifference> found = differences(a, b, options.all);
  Json data = Json::array();
  TextTable table({"register", a.card + " " + a.time, b.card + " " + b.time});
  for (const RegDifference& one : found) {
    const Json in_a = one.in_a ? word_json({one.word, one.a}) : Json();
    const Json in_b = one.in_b ? word_json({one.word, one.b}) : Json();
    data.push_back({{"name", one.word.name()}, {"a", in_a}, {"b", in_b}});
    const auto cell = [&](const Json& side, uint32_t value) {
      return side.is_null() ? std::string("-")
                            : side["value"].get<std::string>() + " " +
                                  pmd::fields_text(one.word.reg->fields, value);
    };
    table.add({one.word.name(), cell(in_a, one.a), cell(in_b, one.b)});
  }
  print_result(context, data, table.empty() ? "no differences\n" : table.text());
  return found.empty() ? kExitOk : kExitFound;
}

using Action = int (*)(const GlobalOptions& context, Options& options);

CLI::App* add_action(CLI::App& regs, GlobalOptions& context,
                     const std::shared_ptr<Options>& options, const char* name, const char* help,
                     const char* examples, Action action) {
  CLI::App* command = regs.add_subcommand(name, help);
  options->card.add_to(*command);
  command->footer(std::string("Examples\n") + examples);
  command->callback([&context, options, action] { context.exit_code = action(context, *options); });
  return command;
}

}  // namespace

void add_regs(CLI::App& app, GlobalOptions& context) {
  const auto options = std::make_shared<Options>();
  CLI::App* regs = app.add_subcommand(
      "regs", "Registers of a card by name; works beside a program that uses it");
  regs->require_subcommand(1);
  regs->footer(
      "Names are BLOCK.REGISTER, where there are several BLOCK[I].REGISTER[J]: id.magic,\n"
      "port.link, qp[0].ring_status[3]. docs/registers.md has them all.");
  const auto add = [&](const char* name, const char* help, const char* examples, Action action) {
    return add_action(*regs, context, options, name, help, examples, action);
  };
  CLI::App* command = add("read", "Read registers",
                          "  rio-tool regs read port.link\n  rio-tool regs read id 0x4010",
                          [](const GlobalOptions& c, Options& o) { return read(c, o); });
  command->add_option("NAME", options->names, "Names, offsets in the BAR, or blocks")->required();
  command = add("write", "Write a register that is the host's",
                "  rio-tool -n regs write id.retry_limit 100\n"
                "  rio-tool regs write port.control enable=0",
                [](const GlobalOptions& c, Options& o) { return write(c, o); });
  command->add_option("NAME", options->name, "Name, or offset in the BAR")->required();
  command->add_option("VALUE", options->values, "A number, or FIELD=NUMBER for some of its fields")
      ->required();
  command = add("dump", "All registers",
                "  rio-tool regs dump --block port\n  rio-tool regs dump --file before.json",
                [](const GlobalOptions& c, Options& o) { return dump(c, o); });
  command->add_option("--block", options->block, "Only names that begin so: port, qp[0], id.cap");
  command->add_option("--file", options->file, "Write a file for 'regs diff'");
  command = add("watch", "Show registers whenever they change",
                "  rio-tool regs watch port --interval 0.5\n"
                "  rio-tool --json regs watch id.heartbeat --count 10",
                [](const GlobalOptions& c, Options& o) { return watch(c, o, o.pace); });
  command->add_option("NAME", options->names, "Names, offsets in the BAR, or blocks")->required();
  options->pace.add_to(*command);
  command = add("diff", "Compare two dumps, or a dump with the card; exit code 3: they differ",
                "  rio-tool regs diff before.json after.json\n  rio-tool regs diff before.json",
                [](const GlobalOptions& c, Options& o) { return diff(c, o); });
  command->add_option("A", options->file, "A file of 'regs dump --file'")->required();
  command->add_option("B", options->other, "Another; the card itself if it is left out");
  command->add_flag("--all", options->all, "Also id.heartbeat, which always differs");
}

}  // namespace rio::tool
