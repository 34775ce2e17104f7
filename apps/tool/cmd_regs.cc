// rio-tool regs: registers by name, read, written, dumped, watched, compared.
#include <cerrno>
#include <cinttypes>
#include <cstring>

#include "apps/common/registers.hpp"
#include "apps/tool/card_option.hpp"
#include "apps/tool/command.hpp"
#include "apps/tool/pace.hpp"
#include "apps/tool/reg_dump.hpp"
#include "base/formatted.hpp"
#include "base/number.hpp"

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

/// Open a card to look at, and find registers of it by name or offset, and whole blocks.
/// @return 0 or -errno, said on stderr.
int open_words(const GlobalOptions& context, const CardOption& option,
               const std::vector<std::string>& names, LookedAtCard* looked,
               std::vector<RegWord>* words) {
  if (const int rc = option.open_to_look(context, looked); rc != 0) {
    return rc;
  }
  for (const std::string& name : names) {
    RegWord word;
    std::string error;
    if (pmd::find_register(name, &word, &error) == 0) {
      words->push_back(word);
      continue;
    }
    const std::vector<RegWord> block = pmd::words_of(*looked->card, name + ".");
    if (block.empty()) {
      return complain(error, "'rio-tool regs dump' shows the names of all", -EINVAL);
    }
    words->insert(words->end(), block.begin(), block.end());
  }
  return 0;
}

std::string dump_text(const RegDump& dump) {
  std::string text;
  for (const RegValue& value : dump.values) {
    text += apps::word_line(value.word, value.value) + '\n';
  }
  return text;
}

int read(const GlobalOptions& context, Options& options) {
  LookedAtCard looked;
  std::vector<RegWord> words;
  RegDump dump;
  if (open_words(context, options.card, options.names, &looked, &words) != 0 ||
      take_dump(*looked.card, words, &dump) != 0) {
    return kExitFailed;
  }
  return print_result(context, dump.values, dump_text(dump));
}

/// "enable=0" into `value`.
int set_field(const RegWord& word, const std::string& text, uint32_t* value) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  std::string known;
  for (const regs::names::FieldName& field : word.reg->fields) {
    known += (known.empty() ? "" : ", ") + std::string(field.name);
    if (name.size() != std::strlen(field.name) || !pmd::begins_with(name, field.name)) {
      continue;
    }
    const uint64_t most = (uint64_t{1} << field.width) - 1;
    uint64_t number = 0;
    if (!base::read_number(text.substr(equals + 1), 0, most, &number)) {
      return complain(
          base::formatted("'%s': not a number of %u bits", text.c_str(), field.width),
          base::formatted("write %s=0 to %s=%" PRIu64, name.c_str(), name.c_str(), most), -EINVAL);
    }
    *value = static_cast<uint32_t>((*value & ~(most << field.lsb)) | number << field.lsb);
    return 0;
  }
  return complain(word.name() + " has no field '" + name + "'",
                  known.empty() ? "it has none; write a number" : "its fields are " + known,
                  -EINVAL);
}

/// Work out a write; writes nothing. @param values foreign: one number, or any of FIELD=NUMBER,
/// which leave the other fields of `before` alone. @return 0, -EINVAL, said on stderr.
int plan_write(const RegWord& word, const std::vector<std::string>& values, uint32_t before,
               uint32_t* out) {
  uint32_t value = before;
  for (const std::string& text : values) {
    if (text.find('=') != std::string::npos) {
      if (const int rc = set_field(word, text, &value); rc != 0) {
        return rc;
      }
    } else if (values.size() > 1) {
      return complain("'" + text + "' beside other values",
                      "write one number, or FIELD=NUMBER only", -EINVAL);
    } else if (!base::read_number(text, &value)) {
      return complain("'" + text + "' is not a 32-bit number", "write it as 16 or 0x10", -EINVAL);
    }
  }
  *out = value;
  return 0;
}

/// Write, and read back. @return 0, -EIO (the register holds something else afterwards), or as
/// Card::reg_write(); said on stderr.
int carry_out(pmd::Card& card, const RegWord& word, uint32_t value) {
  uint32_t after = 0;
  int rc = card.reg_write(word.offset(), value);
  rc = rc != 0 ? rc : card.reg_read(word.offset(), &after);
  if (rc != 0) {
    return complain(apps::access_error("write", word, rc), "see what the log says above", rc);
  }
  return after == value
             ? 0
             : complain(word.name() +
                            base::formatted(" holds 0x%08x after 0x%08x was written", after, value),
                        "a running program may write it as well; 'rio-tool regs watch' shows that",
                        -EIO);
}

int write(const GlobalOptions& context, Options& options) {
  LookedAtCard looked;
  std::vector<RegWord> words;
  if (open_words(context, options.card, {options.name}, &looked, &words) != 0) {
    return kExitFailed;
  }
  const RegWord& word = words[0];
  if (words.size() != 1) {
    return complain(
        "'" + options.name + "' is a block of " + std::to_string(words.size()) + " registers",
        "name one of them");
  }
  if (!word.reg->host) {
    return complain(word.name() + " is the card's; the host must not write it",
                    "write a word of the host's: 'rio-tool --json regs dump' tells the owner of "
                    "each");
  }
  RegDump before;
  uint32_t value = 0;
  if (take_dump(*looked.card, words, &before) != 0 ||
      plan_write(word, options.values, before.values[0].value, &value) != 0 ||
      (!context.dry_run && carry_out(*looked.card, word, value) != 0)) {
    return kExitFailed;
  }
  return print_result(context,
                      {{"before", before.values[0]},
                       {"after", RegValue{word, value}},
                       {"written", !context.dry_run}},
                      dump_text(before) + apps::word_line(word, value) +
                          (context.dry_run ? "  (not written: dry run)\n" : "\n"));
}

int dump(const GlobalOptions& context, Options& options) {
  LookedAtCard looked;
  if (options.card.open_to_look(context, &looked) != 0) {
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
    return print_result(context, dump_json(taken), dump_text(taken));
  }
  if (!context.dry_run && write_file(options.file, json_text(dump_json(taken), 1) + "\n") != 0) {
    return kExitFailed;
  }
  return print_result(
      context,
      {{"file", options.file}, {"registers", taken.values.size()}, {"written", !context.dry_run}},
      std::to_string(taken.values.size()) + " registers of " + taken.card +
          (context.dry_run ? " would go to " : " in ") + options.file + '\n');
}

void print_change(const GlobalOptions& context, const RegValue& now, const RegValue* before) {
  Json line = {{"time", utc_text()}};
  line.update(Json(now));
  const std::string was = before == nullptr
                              ? ""
                              : base::formatted("  (was 0x%08x, %+" PRId64 ")", before->value,
                                                int64_t{now.value} - int64_t{before->value});
  print_result(context, line, time_of_day() + apps::word_line(now.word, now.value) + was + "\n",
               -1);
}

int watch(const GlobalOptions& context, Options& options) {
  LookedAtCard looked;
  std::vector<RegWord> words;
  if (open_words(context, options.card, options.names, &looked, &words) != 0) {
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
  } while (options.pace.next());
  return kExitOk;
}

int diff(const GlobalOptions& context, Options& options) {
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
    if (options.card.open_to_look(context, &looked) != 0 ||
        take_dump(*looked.card, words, &b) != 0) {
      return kExitFailed;
    }
  }
  const std::vector<RegDifference> found = differences(a, b, options.all);
  Json data = Json::array();
  TextTable table({"register", a.card + " " + a.time, b.card + " " + b.time});
  for (const RegDifference& one : found) {
    const Json in_a = one.a ? Json(RegValue{one.word, *one.a}) : Json();
    const Json in_b = one.b ? Json(RegValue{one.word, *one.b}) : Json();
    data.push_back({{"name", one.word.name()}, {"a", in_a}, {"b", in_b}});
    const auto cell = [&](const Json& side, const std::optional<uint32_t>& value) {
      return side.is_null() ? std::string("-")
                            : side["value"].get<std::string>() + " " +
                                  pmd::fields_text(one.word.reg->fields, *value);
    };
    table.add({one.word.name(), cell(in_a, one.a), cell(in_b, one.b)});
  }
  print_result(context, data, table.empty() ? "no differences\n" : table.text());
  return found.empty() ? kExitOk : kExitFound;
}

}  // namespace

void add_regs(CLI::App& app, GlobalOptions& context) {
  CLI::App* regs = app.add_subcommand(
      "regs", "Registers of a card by name; works beside a program that uses it");
  regs->require_subcommand(1);
  regs->footer(
      "Names are BLOCK.REGISTER, where there are several BLOCK[I].REGISTER[J]: id.magic,\n"
      "port.link, qp[0].ring_status[3]. docs/registers.md has them all.");
  const auto add = [&](const char* name, const char* help, const std::string& examples,
                       int (*run)(const GlobalOptions&, Options&)) {
    const auto added =
        add_command(*regs, context, name, help, ("Examples\n" + examples).c_str(), run);
    added.options.card.add_to(added.app);
    return added;
  };
  const char* const names = "Names, offsets in the BAR, or blocks";
  const auto [read_app, of_read] =
      add("read", "Read registers",
          "  rio-tool regs read port.link\n  rio-tool regs read id 0x4010", read);
  read_app.add_option("NAME", of_read.names, names)->required();
  const auto [write_app, of_write] = add("write", "Write a register that is the host's",
                                         "  rio-tool -n regs write id.retry_limit 100\n"
                                         "  rio-tool regs write port.control enable=0",
                                         write);
  write_app.add_option("NAME", of_write.name, "Name, or offset in the BAR")->required();
  write_app
      .add_option("VALUE", of_write.values, "A number, or FIELD=NUMBER for some of its fields")
      ->required();
  const auto [dump_app, of_dump] =
      add("dump", "All registers",
          "  rio-tool regs dump --block port\n  rio-tool regs dump --file before.json", dump);
  dump_app.add_option("--block", of_dump.block, "Only names that begin so: port, qp[0], id.cap");
  dump_app.add_option("--file", of_dump.file, "Write a file for 'regs diff'");
  const auto [watch_app, of_watch] = add("watch", "Show registers whenever they change",
                                         "  rio-tool regs watch port --interval 0.5\n"
                                         "  rio-tool --json regs watch id.heartbeat --count 10",
                                         watch);
  watch_app.add_option("NAME", of_watch.names, names)->required();
  of_watch.pace.add_to(watch_app);
  const auto [diff_app, of_diff] =
      add("diff", "Compare two dumps, or a dump with the card; exit code 3: they differ",
          "  rio-tool regs diff before.json after.json\n  rio-tool regs diff before.json", diff);
  diff_app.add_option("A", of_diff.file, "A file of 'regs dump --file'")->required();
  diff_app.add_option("B", of_diff.other, "Another; the card itself if it is left out");
  diff_app.add_flag("--all", of_diff.all, "Also id.heartbeat, which always differs");
}

}  // namespace rio::tool
