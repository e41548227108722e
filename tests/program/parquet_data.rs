//! Parquet as data: draws are those of the text, and what cannot be read is refused by its name.

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_what_it_wants() {
    let place = crate::support::Place::new();
    place.write("d.parquet", b"PAR1 and so on PAR1").write("twin", b"PAR1 and so on PAR1");
    place.write("half.parquet", b"PAR1 and so on");
    let text = "name = \"e\"\nseed = 1\nmodel.mean = {}\nsampler.B = 4\ndata.train = \"FILE\"\n";
    for file in ["d.parquet", "twin", "half.parquet"] {
        place.write("e.toml", text.replace("FILE", file));
        let ended = place.npl(&["run", "e.toml"]);
        assert_eq!(ended.code, Some(2), "{file}: {}", ended.stderr);
        for words in [file, "--features parquet", "CSV", "npl convert"] {
            assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
        }
    }
    let ended = place.npl(&["convert", "d.parquet"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("--features parquet"), "{}", ended.stderr);
    // A text whose first column is called so is a text.
    place.write("e.toml", text.replace("FILE", "t.csv")).write("t.csv", "PAR1,x\n1,2\n3,5\n4,4\n");
    place.ok(&["run", "e.toml", "--quiet"]);
}

#[cfg(feature = "parquet")]
pub use with::of_csv;

#[cfg(feature = "parquet")]
mod with {
    use std::sync::Arc;

    use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
    use parquet::data_type::{
        BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType,
        Int32Type, Int64Type, Int96, Int96Type,
    };
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use parquet::schema::types::{Type, TypePtr};

    use npl::data::text::{Categorical, Rules};
    use npl::data::{Format, read};

    use crate::support::{Place, assert_decent};

    /// A file with these columns; `put` writes the next column of a group of rows, by the number of the group.
    fn file(
        fields: Vec<Type>,
        groups: usize,
        compression: Compression,
        put: impl Fn(usize, &mut SerializedRowGroupWriter<'_, Vec<u8>>),
    ) -> Vec<u8> {
        let fields: Vec<TypePtr> = fields.into_iter().map(Arc::new).collect();
        let schema = Type::group_type_builder("schema").with_fields(fields).build().unwrap();
        let properties = WriterProperties::builder().set_compression(compression).build();
        let mut writer =
            SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties)).unwrap();
        for g in 0..groups {
            let mut group = writer.next_row_group().unwrap();
            put(g, &mut group);
            group.close().unwrap();
        }
        writer.into_inner().unwrap()
    }

    fn column<T: DataType>(
        group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
        values: &[T::T],
        levels: Option<&[i16]>,
    ) {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<T>().write_batch(values, levels, None).unwrap();
        column.close().unwrap();
    }

    fn field(name: &str, physical: Physical, logical: Option<LogicalType>, repetition: Repetition) -> Type {
        Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()
            .unwrap()
    }

    /// The table of a text without quotes in groups of so many rows: doubles where all cells but `NA` are numbers, texts elsewhere.
    pub fn of_csv(text: &str, rows: usize, compression: Compression) -> Vec<u8> {
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<&str>>());
        let names = lines.next().unwrap();
        let cells: Vec<Vec<&str>> = lines.collect();
        let is_number = |j: usize| cells.iter().all(|row| row[j] == "NA" || row[j].parse::<f64>().is_ok());
        let fields = names.iter().enumerate().map(|(j, name)| match is_number(j) {
            true => field(name, Physical::DOUBLE, None, Repetition::OPTIONAL),
            false => field(name, Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::OPTIONAL),
        });
        file(fields.collect(), cells.len().div_ceil(rows), compression, |g, group| {
            let cells = &cells[g * rows..cells.len().min((g + 1) * rows)];
            for j in 0..names.len() {
                let levels: Vec<i16> = cells.iter().map(|row| i16::from(row[j] != "NA")).collect();
                let there = cells.iter().map(|row| row[j]).filter(|cell| *cell != "NA");
                match is_number(j) {
                    true => {
                        let values: Vec<f64> = there.map(|cell| cell.parse().unwrap()).collect();
                        column::<DoubleType>(group, &values, Some(&levels));
                    }
                    false => {
                        let values: Vec<ByteArray> = there.map(ByteArray::from).collect();
                        column::<ByteArrayType>(group, &values, Some(&levels));
                    }
                }
            }
        })
    }

    /// Numbers and texts, some of them missing, and a response of text.
    fn table(rows: usize) -> String {
        let mut text = "age,town,x,z,y\n".to_owned();
        for i in 0..rows {
            let age = if i % 97 == 3 { "NA".to_owned() } else { (20 + i * 7 % 50).to_string() };
            let town = if i % 89 == 5 { "NA" } else { ["York", "Hull", "Leeds"][i * i % 3] };
            let (x, z) = ((i as f64 * 0.7).sin(), (i * 37 % 101) as f64 / 8.0);
            let y = if (i * 13) % 29 > 12 { "yes" } else { "no" };
            text += &format!("{age},{town},{x},{z},{y}\n");
        }
        text
    }

    const EXPERIMENT: &str = "name = \"e\"\nseed = 4\n[data]\ntrain = \"d.csv\"\ntarget = \"y\"\nclasses = { yes = 1, no = 0 }\n\
                              missing_values = [\"NA\", \"\"]\nmissing = \"drop\"\ncategorical = [\"town\"]\nstandardise = \"numeric\"\n\
                              [model.logistic]\npenalty = \"ridge\"\n[sampler]\nB = 12\n";

    fn draws(place: &Place, args: &[&str]) -> String {
        place.ok(&[&["run", "e.toml", "--quiet", "--out", "out", "--force", "--no-cache"], args].concat());
        place.read("out/samples.csv")
    }

    #[test]
    fn draws_are_those_of_the_text() {
        let place = Place::new();
        let text = table(3000);
        place.write("d.csv", &text).write("e.toml", EXPERIMENT);
        let expected = draws(&place, &[]);
        let packed = [
            ("plain", 3000, Compression::UNCOMPRESSED),
            ("snappy", 700, Compression::SNAPPY),
            ("gzip", 1, Compression::GZIP(Default::default())),
            ("lz4", 1500, Compression::LZ4_RAW),
        ];
        for (name, rows, compression) in packed {
            let path = format!("{name}.parquet");
            place
                .write(&path, of_csv(&text, rows, compression))
                .write(name, of_csv(&text, rows, compression));
            let train = format!("data.train={path}");
            assert_eq!(draws(&place, &["--set", &train, "--threads", "3"]), expected, "{name}");
            assert_eq!(draws(&place, &["--set", &train, "--set", "data.mapped=true"]), expected, "{name}");
            // By its bytes, whatever it is called.
            assert_eq!(draws(&place, &["--set", &format!("data.train={name}")]), expected, "{name}");
        }
        let said = place.ok(&["convert", "snappy.parquet"]).stdout;
        assert!(said.contains("snappy.nplc: 3000 rows x 5 columns"), "{said}");
        assert_eq!(draws(&place, &["--set", "data.train=snappy.nplc"]), expected);
        // Texts are levels without being named; the first rows are those of the text.
        for more in ["data.categorical=auto", "data.columns=[\"x\", \"z\", \"town\"]", "data.rows=1100"] {
            let [one, other] = ["data.train=d.csv", "data.train=snappy.parquet"]
                .map(|train| draws(&place, &["--set", train, "--set", more]));
            assert_eq!(one, other, "{more}");
        }
        // Beside a text, as test rows, as a file of folds, as historical rows.
        place.write("half.csv", table(500));
        place.write("half.parquet", of_csv(&table(500), 90, Compression::SNAPPY));
        let test = "data.test=half.FORMAT";
        let pooled = "data.train=[\"d.csv\", \"half.FORMAT\"]";
        let history = "prior={ alpha = 5.0, T = 20, base = { empirical = { file = \"half.FORMAT\" } } }";
        for set in [test, pooled, history] {
            let [one, other] = ["csv", "parquet"].map(|format| {
                let draws = draws(&place, &["--set", &set.replace("FORMAT", format)]);
                let report: serde_json::Value = serde_json::from_str(&place.read("out/report.json")).unwrap();
                (draws, report["metrics"]["lppd"].clone())
            });
            assert_eq!(one, other, "{set}");
        }
    }

    #[test]
    fn new_rows_are_predicted_as_those_of_a_text() {
        let place = Place::new();
        place.write("d.csv", table(800)).write("e.toml", EXPERIMENT).ok(&["run", "e.toml", "--out", "out"]);
        let fresh = table(300).replace(",Leeds,", ",York,");
        place.write("new.csv", &fresh).write("new.parquet", of_csv(&fresh, 70, Compression::SNAPPY));
        for more in [&["--keep", "town"][..], &["--draws"]] {
            let [text, rows] = ["new.csv", "new.parquet"].map(|new| {
                let ended = place.ok(&[&["predict", "out", new], more].concat());
                ended.stdout.replace("NA", "")
            });
            assert_eq!(text, rows);
        }
        place.write("bad.parquet", of_csv(&fresh.replacen("York", "Ely", 1), 70, Compression::SNAPPY));
        let ended = place.npl(&["predict", "out", "bad.parquet"]);
        let words = "bad.parquet: row 1: column \"town\" (2): \"Ely\" is a level that no training row has";
        assert!(ended.code == Some(2) && ended.stderr.contains(words), "{}", ended.stderr);
        place.write("cut.parquet", &of_csv(&fresh, 70, Compression::SNAPPY)[..2000]);
        let ended = place.npl(&["predict", "out", "cut.parquet"]);
        assert!(ended.code == Some(2) && ended.stderr.contains("cut.parquet: "), "{}", ended.stderr);
    }

    /// A column of each type, two rows of it.
    fn types() -> Vec<u8> {
        const REQUIRED: Repetition = Repetition::REQUIRED;
        let integer = |bits, signed| Some(LogicalType::integer(bits, signed));
        let point = Some(LogicalType::timestamp(true, TimeUnit::MILLIS));
        let list = field("item", Physical::INT32, None, REQUIRED);
        let nested = Type::group_type_builder("nested")
            .with_fields(vec![Arc::new(list)])
            .with_repetition(REQUIRED)
            .build()
            .unwrap();
        let repeated =
            Type::primitive_type_builder("many", Physical::INT32).with_repetition(Repetition::REPEATED);
        let fixed = Type::primitive_type_builder("fixed", Physical::FIXED_LEN_BYTE_ARRAY).with_length(2);
        let old =
            Type::primitive_type_builder("old", Physical::INT32).with_converted_type(ConvertedType::DATE);
        let decimal = Type::primitive_type_builder("dec", Physical::INT64)
            .with_logical_type(Some(LogicalType::decimal(2, 9)))
            .with_precision(9)
            .with_scale(2);
        let fields = vec![
            field("flag", Physical::BOOLEAN, None, REQUIRED),
            field("i8", Physical::INT32, integer(8, true), REQUIRED),
            field("u32", Physical::INT32, integer(32, false), Repetition::OPTIONAL),
            field("i64", Physical::INT64, None, REQUIRED),
            field("u64", Physical::INT64, integer(64, false), REQUIRED),
            field("f32", Physical::FLOAT, None, REQUIRED),
            field("bytes", Physical::BYTE_ARRAY, None, REQUIRED),
            field("day", Physical::INT32, Some(LogicalType::Date), REQUIRED),
            field("at", Physical::INT64, point, REQUIRED),
            field("ancient", Physical::INT96, None, REQUIRED),
            nested,
            repeated.build().unwrap(),
            fixed.with_repetition(REQUIRED).build().unwrap(),
            old.with_repetition(REQUIRED).build().unwrap(),
            decimal.with_repetition(REQUIRED).build().unwrap(),
        ];
        file(fields, 1, Compression::UNCOMPRESSED, |_, group| {
            column::<BoolType>(group, &[true, false], None);
            column::<Int32Type>(group, &[-7, 7], None);
            column::<Int32Type>(group, &[-1], Some(&[1, 0]));
            column::<Int64Type>(group, &[-(1 << 40), (1 << 53) + 1], None);
            column::<Int64Type>(group, &[-1, 4], None);
            column::<FloatType>(group, &[0.1, -2.5], None);
            column::<ByteArrayType>(group, &[ByteArray::from("a"), ByteArray::from("b")], None);
            column::<Int32Type>(group, &[1, 2], None);
            column::<Int64Type>(group, &[1, 2], None);
            column::<Int96Type>(group, &[Int96::default(), Int96::default()], None);
            column::<Int32Type>(group, &[1, 2], None);
            let mut many = group.next_column().unwrap().unwrap();
            many.typed::<Int32Type>().write_batch(&[1, 2], Some(&[1, 1]), Some(&[0, 0])).unwrap();
            many.close().unwrap();
            let fixed = [b"ab".to_vec(), b"cd".to_vec()].map(|b| ByteArray::from(b).into());
            column::<FixedLenByteArrayType>(group, &fixed, None);
            column::<Int32Type>(group, &[1, 2], None);
            column::<Int64Type>(group, &[1, 2], None);
        })
    }

    #[test]
    fn types_that_are_numbers_or_texts_are_read_and_others_named() {
        let place = Place::new();
        place.write("t.parquet", types());
        let table = |columns: &[&str], rules: Rules| {
            let columns = Some(columns.iter().map(|name| name.to_string()).collect());
            read(&place.path("t.parquet"), Format::Parquet, &Rules { columns, ..rules })
        };
        let numbers = ["flag", "i8", "u32", "i64", "u64", "f32"];
        let found = table(&numbers, Rules::default()).unwrap().0;
        let first = [1.0, -7.0, 4_294_967_295.0, -1_099_511_627_776.0, 18_446_744_073_709_551_615.0];
        assert_eq!(found.cells[..5], first);
        assert_eq!(found.cells[5], f64::from(0.1f32));
        assert!(found.cells[6 + 2].is_nan(), "a null is missing");
        assert_eq!(found.cells[6 + 3], 9_007_199_254_740_992.0, "rounded as text would be");
        // As texts, whole numbers are exact.
        let groups = vec!["i64".to_owned(), "u64".to_owned(), "flag".to_owned()];
        let found = table(&["bytes"], Rules { groups, categorical: Categorical::Auto, ..Rules::default() });
        let levels = |kind: &npl::data::table::Kind| match kind {
            npl::data::table::Kind::Levels(levels) => levels.names().to_vec(),
            npl::data::table::Kind::Number => Vec::new(),
        };
        let kinds: Vec<Vec<String>> = found.unwrap().0.kinds.iter().map(levels).collect();
        assert_eq!(
            kinds,
            [
                vec!["1", "0"],
                vec!["-1099511627776", "9007199254740993"],
                vec!["18446744073709551615", "4"],
                vec!["a", "b"]
            ]
        );
        let missing = vec!["-7".to_owned()];
        let found = table(&["i8"], Rules { missing, ..Rules::default() }).unwrap().0;
        assert!(found.cells[0].is_nan() && found.cells[1] == 7.0, "a number that marks a missing value");
        for (name, place, what) in [
            ("day", 8, "dates"),
            ("at", 9, "points in time"),
            ("ancient", 10, "points in time"),
            ("nested", 11, "nested values"),
            ("many", 12, "nested values"),
            ("fixed", 13, "bytes of a fixed length"),
            ("old", 14, "dates"),
            ("dec", 15, "decimals"),
        ] {
            let error = table(&["i8", name], Rules::default()).unwrap_err().to_string();
            let words = format!("t.parquet: column \"{name}\" ({place}) holds {what}, which are not read");
            assert!(error.contains(&words), "{error}");
        }
        let error = table(&["bytes"], Rules::default()).unwrap_err().to_string();
        assert!(error.contains("t.parquet: row 1: column \"bytes\" (7): \"a\" is not a number"), "{error}");
    }

    #[test]
    fn what_is_no_table_is_refused() {
        let double = |name: &str| field(name, Physical::DOUBLE, None, Repetition::REQUIRED);
        let doubles = |names: &[&str], values: &[f64], compression| {
            let fields = names.iter().map(|name| double(name)).collect();
            file(fields, usize::from(!values.is_empty()), compression, |_, group| {
                names.iter().for_each(|_| column::<DoubleType>(group, values, None));
            })
        };
        let plain = Compression::UNCOMPRESSED;
        let sound = doubles(&["a", "b"], &[1.0, 2.0, 4.0], plain);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, &sound).unwrap();
        let place = Place::new();
        for (name, bytes, words) in [
            ("zero.parquet", doubles(&["a"], &[], plain), "no rows of data"),
            ("twins.parquet", doubles(&["a", "a"], &[1.0], plain), "the name \"a\" is that of column 1 too"),
            ("cut.parquet", sound[..sound.len() - 9].to_vec(), "not a Parquet file"),
            ("text.parquet", b"a,b\n1,2\n".to_vec(), "not a Parquet file"),
            ("short.parquet", b"PAR1".to_vec(), "not a Parquet file"),
            ("d.parquet.gz", gzip.finish().unwrap(), "unpack it"),
            (
                "inf.parquet",
                doubles(&["a"], &[1.0, f64::INFINITY], plain),
                "row 2: column \"a\" (1): \"inf\" is not a finite",
            ),
            (
                "nan.parquet",
                doubles(&["a"], &[f64::NAN], plain),
                "row 1: column \"a\" (1): \"NaN\" marks a missing value",
            ),
        ] {
            place.write(name, bytes);
            let text = format!(
                "name = \"e\"\nseed = 1\nmodel.mean = {{}}\nsampler.B = 4\ndata.train = \"{name}\"\n"
            );
            let ended = place.write("e.toml", text).npl(&["run", "e.toml"]);
            assert_eq!(ended.code, Some(2), "{name}: {}", ended.stderr);
            assert!(ended.stderr.contains(name) && ended.stderr.contains(words), "{name}: {}", ended.stderr);
            ended.assert_decent(name);
        }
        place.write("ok.parquet", sound);
        let set = ["run", "e.toml", "--set", "data.train=ok.parquet", "--set", "data.delimiter=;"];
        let ended = place.npl(&set);
        assert!(
            ended.code == Some(2) && ended.stderr.contains("these are Parquet files"),
            "{}",
            ended.stderr
        );
        let ended = place.npl(&["convert", "ok.parquet", "--delimiter", ";"]);
        assert!(ended.code == Some(2) && ended.stderr.contains("--delimiter"), "{}", ended.stderr);
    }

    /// Bits flipped and files cut short anywhere: an error of words, or a table, but nothing that comes down.
    #[test]
    fn damage_ends_with_words() {
        let place = Place::new();
        let rules = Rules { categorical: Categorical::Auto, ..Rules::default() };
        let (mut refused, mut tried) = (0, 0);
        for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::LZ4_RAW] {
            let sound = of_csv(&table(60), 25, compression);
            let step = (sound.len() / 300).max(1);
            for at in (0..sound.len()).step_by(step).chain(sound.len() - 300..sound.len()) {
                let mut flipped = sound.clone();
                flipped[at] ^= 1 << (at % 8);
                for bytes in [&flipped[..], &sound[..at]] {
                    place.write("f.parquet", bytes);
                    tried += 1;
                    if let Err(error) = read(&place.path("f.parquet"), Format::Parquet, &rules) {
                        let error = error.to_string();
                        assert!(error.contains("f.parquet: "), "byte {at}: {error}");
                        assert_decent("f.parquet", &error);
                        refused += 1;
                    }
                }
            }
        }
        // A flipped bit of a number is another number: Parquet has checksums where its writer made some.
        assert!(tried > 3000 && refused > tried / 2, "{refused} of {tried}");
    }
}
