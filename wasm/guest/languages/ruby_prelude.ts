/**
 * The part of Ruby's process that is written in Ruby: it runs programs and cells, and
 * tells how they ended as JSON.
 *
 * Its frames are in a file of this name, which no backtrace shows that programs see.
 *
 * @module
 */

export const PRELUDE_FILE = "<internal:rillbox>";

export const PRELUDE = String.raw`
# The bridge to JavaScript is as if it were not built in. (What it imports is refused, too.)
Object.send(:remove_const, :JS) if Object.const_defined?(:JS)
$LOADED_FEATURES << "js.so" unless $LOADED_FEATURES.include?("js.so")

$stdout.sync = $stderr.sync = true

# RubyGems takes longer to load than all else together: it comes when it is asked for.
# What it would find is where it is found without it.
Object.autoload(:Gem, "rubygems")
Object.autoload(:DidYouMean, "did_you_mean")
$LOAD_PATH.concat(Dir.glob("/usr/local/lib/ruby/gems/3.4.0/gems/*/lib").sort)

module RubyVM::Rillbox
  FRAME = /\A(?:<internal:rillbox>|eval):\d/
  ENDINGS = []
  # Bytes of a value, and of one that is shown.
  MOST = 1 << 20

  class << self
    def run(code, file, args, env, session, echo)
      unless @begun
        @begun = true
        Dir.chdir("/workspace") rescue nil
        ENV["PWD"] = "/workspace"
      end
      ENV.replace(env)
      ARGV.replace(args)
      $0 = file
      data(code)
      value = nil
      begin
        value = session ? TOPLEVEL_BINDING.eval(code, file, 1) : program(code, file).call
        told = {"code" => 0}
        finish(told) unless session
      rescue Exception => error
        told = {"code" => 1}
        cut(error)
        told["code"] = error.status if SystemExit === error
        # In what is done at the end, $! is what ended the program.
        finish(told) if !session || SystemExit === error
        fail(told, error) unless SystemExit === error
      else
        show(value, code, session, echo, told)
      end
      flush
      encode(told, 8 * MOST)
    end

    def complete(text)
      word = text[/(?:(?:::)?[A-Za-z_@$][\w:]*[.])?(?:[@$]{0,2}|::)[A-Za-z_]?[\w:]*[?!]?\z/] || ""
      all = TOPLEVEL_BINDING
      receiver, dot, name = word.rpartition(".")
      names =
        if dot == "."
          # A method may do anything: only what has a name is asked.
          return "[]" unless receiver.match?(/\A[A-Za-z_@$:][\w:]*\z/)
          all.eval(receiver).public_methods.map { |method| receiver + "." + method.name }
        elsif word.include?("::")
          scope, _, _ = word.rpartition("::")
          Object.const_get(scope).constants.map { |constant| scope + "::" + constant.name }
        elsif word.start_with?("$")
          global_variables
        elsif word.start_with?("@")
          all.receiver.instance_variables
        else
          all.local_variables + all.receiver.methods + all.receiver.private_methods +
            Object.constants + %w[begin break case class def defined? do else elsif end
              ensure false for if in module next nil not redo rescue retry return self
              super then true undef unless until when while yield]
        end
      names = names.map(&:to_s).select { |one| one.start_with?(word) && one.match?(/\w[?!]?\z/) }
      encode(names.uniq.sort.first(200), MOST)
    rescue Exception
      "[]"
    end

    def unfinished(text)
      RubyVM::InstructionSequence.compile_prism(text)
      "false"
    rescue SyntaxError => error
      # Nothing is wrong with it but that it ends.
      ends = /unexpected end-of-input|unterminated|embedded document meets end of file/
      (error.message.match?(ends) && !error.message.include?("ignoring it")).to_s
    rescue Exception
      "false"
    end

    def utf8(text)
      return text unless String === text && text.encoding != Encoding::UTF_8
      text.dup.force_encoding("UTF-8").freeze
    end

    private

    # A program is compiled as the file that it is, so that its lines are known.
    def program(code, file)
      own = File.binread(file).b == code.b rescue own = false
      code = postponed(code)
      if own && code.equal?(@as_given)
        compiled = RubyVM::InstructionSequence.compile_file_prism(file)
        -> { compiled.eval }
      else
        -> { TOPLEVEL_BINDING.eval(code, file, 1) }
      end
    end

    # END { … } is at_exit { … }, for which Ruby's own list is not kept.
    def postponed(code)
      @as_given = code
      return code unless code.match?(/\bEND\s*\{/)
      require "prism"
      found = []
      look = [Prism.parse(code).value]
      while (node = look.pop)
        found << node.location.start_offset if Prism::PostExecutionNode === node
        look.concat(node.compact_child_nodes)
      end
      bytes = code.b
      found.sort.reverse_each { |at| bytes[at, 3] = "at_exit" }
      found.empty? ? code : bytes.force_encoding(code.encoding)
    end

    # What follows __END__ is what the constant DATA reads.
    def data(code)
      return unless (at = code.match(/^__END__\r?\n/)&.end(0) || code.match(/^__END__\z/)&.end(0))
      require "stringio"
      Object.send(:remove_const, :DATA) if Object.const_defined?(:DATA, false)
      Object.const_set(:DATA, StringIO.new(code[at..].dup))
    end

    def finish(told)
      while (block = ENDINGS.pop)
        begin
          block.call
        rescue SystemExit => error
          told["code"] = error.status
        rescue Exception => error
          told["code"] = 1
          fail(told, cut(error))
        end
      end
    end

    # Takes our own frames from a backtrace, and from that of what caused it.
    def cut(error)
      seen = {}.compare_by_identity
      at = error
      while at && !seen[at]
        seen[at] = true
        places = at.backtrace_locations
        lines = at.backtrace
        if lines && (own = lines.index { |line| line.match?(FRAME) })
          at.set_backtrace(places && places.length == lines.length ? places.first(own) : lines.first(own)) unless at.frozen?
        end
        at = at.cause
      end
      error
    end

    def fail(told, error)
      flush
      # What tells of errors at greater length is loaded when there is one.
      hint(error)
      text = error.full_message(highlight: false, order: :top)
      # Of an error without a place Ruby tells the place where it is shown, which is here.
      text = clean(text, 8 * MOST).sub(/\A<internal:rillbox>:\d+:in '[^']*': /, "")
      STDERR.write(text, text.end_with?("\n") ? "" : "\n")
      told["error"] ||= {
        "name" => clean(error.class.name || "Exception", 200),
        "message" => clean(error.message, MOST),
        "traceback" => clean(text, MOST),
      }
    rescue Exception
      told["error"] ||= {"name" => error.class.name.to_s, "message" => "", "traceback" => ""}
    end

    def hint(error)
      case error
      when SyntaxError, SystemStackError, NoMemoryError then nil
      when NameError, KeyError, NoMatchingPatternKeyError
        require "did_you_mean"
        require "error_highlight"
      when TypeError, ArgumentError
        require "error_highlight"
      end
    rescue Exception
      nil
    end

    def clean(text, most)
      text = text.to_s.dup
      if text.encoding == Encoding::BINARY || text.encoding == Encoding::US_ASCII
        text.force_encoding("UTF-8")
      else
        text = text.encode("UTF-8", invalid: :replace, undef: :replace)
      end
      text.scrub("\uFFFD").byteslice(0, most).scrub("")
    end

    def show(value, code, session, echo, told)
      if session
        TOPLEVEL_BINDING.local_variable_set(:_, value)
      end
      if echo
        return if code.match?(/\A(?:\s*(?:#.*)?)*\z/)
        text = value.inspect
        text = text.byteslice(0, MOST).scrub("") + "…" if text.bytesize > MOST
        STDOUT.write("=> ", text, "\n")
      elsif !value.nil?
        form = encode(value, MOST)
        told["value"] = Form.new(form)
      end
    rescue NoForm
      nil
    rescue Exception => error
      told["code"] = 1
      fail(told, cut(error))
    end

    def flush
      ObjectSpace.each_object(IO) do |io|
        io.flush unless io.closed?
      rescue Exception
        nil
      end
    end

    def encode(value, most)
      out = +""
      put(value, out, most, 0)
      out
    end

    def put(value, out, most, depth)
      raise NoForm if depth > 100 || out.bytesize > most
      case value
      when nil then out << "null"
      when true, false then out << value.to_s
      when Form then out << value.text
      when Integer
        raise NoForm if value.abs > 9007199254740991
        out << value.to_s
      when Float
        raise NoForm unless value.finite?
        out << value.to_s
      when String, Symbol then quote(value.to_s, out, most)
      when Array
        out << "["
        value.each_with_index do |item, index|
          out << "," if index > 0
          put(item, out, most, depth + 1)
        end
        out << "]"
      when Hash
        out << "{"
        first = true
        value.each do |key, item|
          raise NoForm unless String === key || Symbol === key
          out << "," unless first
          first = false
          quote(key.to_s, out, most)
          out << ":"
          put(item, out, most, depth + 1)
        end
        out << "}"
      else raise NoForm
      end
    end

    def quote(text, out, most)
      raise NoForm if text.bytesize > most
      text = text.encode("UTF-8")
      raise NoForm unless text.valid_encoding?
      out << '"' << text.gsub(/["\\\x00-\x1f]/) { |c| format("\\u%04x", c.ord) } << '"'
    rescue EncodingError
      raise NoForm
    end
  end

  NoForm = Class.new(StandardError)
  Form = Struct.new(:text)
end

# The C library has no locale here, so that Ruby takes the environment for bytes.
ENV.singleton_class.prepend(Module.new {
  def [](name) = RubyVM::Rillbox.utf8(super)
  def fetch(...) = RubyVM::Rillbox.utf8(super)
  def to_h(...) = super.transform_values { |value| RubyVM::Rillbox.utf8(value) }
})

module Kernel
  def at_exit(&block)
    raise ArgumentError, "called without block" unless block
    RubyVM::Rillbox::ENDINGS << block
    block
  end
  module_function :at_exit

  [:"\x60", :system, :spawn, :exec, :fork].each do |name|
    define_method(name) do |*|
      raise NotImplementedError, "#{name}: no other program can be started here", caller(1)
    end
    module_function name
  end
end

{ IO => :popen, Process => :spawn }.each do |where, name|
  where.define_singleton_method(name) do |*|
    raise NotImplementedError, "#{name}: no other program can be started here", caller(1)
  end
end
`;
